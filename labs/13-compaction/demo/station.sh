signal_1() {
    if [ "$1" = "clerk" ]; then echo "$((1 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 1
}
bell_2() {
    if [ "$1" = "gate" ]; then echo "$((2 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 2
}
lamp_3() {
    if [ "$1" = "signal" ]; then echo "$((3 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 3
}
clerk_4() {
    if [ "$1" = "track" ]; then echo "$((4 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 4
}
signal_5() {
    if [ "$1" = "lamp" ]; then echo "$((5 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 5
}
lamp_6() {
    if [ "$1" = "gate" ]; then echo "$((6 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 6
}
bell_7() {
    if [ "$1" = "signal" ]; then echo "$((7 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 0
}
clerk_8() {
    if [ "$1" = "track" ]; then echo "$((8 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 1
}
bell_9() {
    if [ "$1" = "gate" ]; then echo "$((9 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 2
}
signal_10() {
    if [ "$1" = "gate" ]; then echo "$((10 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 3
}
clerk_11() {
    if [ "$1" = "lamp" ]; then echo "$((11 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 4
}
lamp_12() {
    if [ "$1" = "track" ]; then echo "$((12 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 5
}
track_13() {
    if [ "$1" = "bell" ]; then echo "$((13 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 6
}
signal_14() {
    if [ "$1" = "clerk" ]; then echo "$((14 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 0
}
gate_15() {
    if [ "$1" = "lamp" ]; then echo "$((15 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 1
}
signal_16() {
    if [ "$1" = "gate" ]; then echo "$((16 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 2
}
gate_17() {
    if [ "$1" = "track" ]; then echo "$((17 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 3
}
track_18() {
    if [ "$1" = "lamp" ]; then echo "$((18 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 4
}
track_19() {
    if [ "$1" = "gate" ]; then echo "$((19 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 5
}
track_20() {
    if [ "$1" = "lamp" ]; then echo "$((20 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 6
}
lamp_21() {
    if [ "$1" = "track" ]; then echo "$((21 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 0
}
clerk_22() {
    if [ "$1" = "gate" ]; then echo "$((22 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 1
}
bell_23() {
    if [ "$1" = "track" ]; then echo "$((23 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 2
}
lamp_24() {
    if [ "$1" = "bell" ]; then echo "$((24 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 3
}
gate_25() {
    if [ "$1" = "bell" ]; then echo "$((25 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 4
}
clerk_26() {
    if [ "$1" = "lamp" ]; then echo "$((26 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 5
}
clerk_27() {
    if [ "$1" = "lamp" ]; then echo "$((27 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 6
}
signal_28() {
    if [ "$1" = "bell" ]; then echo "$((28 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 0
}
track_29() {
    if [ "$1" = "clerk" ]; then echo "$((29 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 1
}
gate_30() {
    if [ "$1" = "signal" ]; then echo "$((30 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 2
}
track_31() {
    if [ "$1" = "clerk" ]; then echo "$((31 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 3
}
track_32() {
    if [ "$1" = "lamp" ]; then echo "$((32 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 4
}
gate_33() {
    if [ "$1" = "signal" ]; then echo "$((33 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 5
}
bell_34() {
    if [ "$1" = "lamp" ]; then echo "$((34 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 6
}
lamp_35() {
    if [ "$1" = "bell" ]; then echo "$((35 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 0
}
lamp_36() {
    if [ "$1" = "clerk" ]; then echo "$((36 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 1
}
bell_37() {
    if [ "$1" = "gate" ]; then echo "$((37 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 2
}
track_38() {
    if [ "$1" = "bell" ]; then echo "$((38 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 3
}
track_39() {
    if [ "$1" = "lamp" ]; then echo "$((39 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 4
}
gate_40() {
    if [ "$1" = "bell" ]; then echo "$((40 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 5
}
gate_41() {
    if [ "$1" = "bell" ]; then echo "$((41 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 6
}
lamp_42() {
    if [ "$1" = "bell" ]; then echo "$((42 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 0
}
lamp_43() {
    if [ "$1" = "gate" ]; then echo "$((43 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 1
}
bell_44() {
    if [ "$1" = "track" ]; then echo "$((44 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 2
}
signal_45() {
    if [ "$1" = "bell" ]; then echo "$((45 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 3
}
track_46() {
    if [ "$1" = "bell" ]; then echo "$((46 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 4
}
bell_47() {
    if [ "$1" = "gate" ]; then echo "$((47 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 5
}
signal_48() {
    if [ "$1" = "track" ]; then echo "$((48 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 6
}
lamp_49() {
    if [ "$1" = "gate" ]; then echo "$((49 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 0
}
track_50() {
    if [ "$1" = "signal" ]; then echo "$((50 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 1
}
clerk_51() {
    if [ "$1" = "bell" ]; then echo "$((51 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 2
}
bell_52() {
    if [ "$1" = "lamp" ]; then echo "$((52 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 3
}
track_53() {
    if [ "$1" = "bell" ]; then echo "$((53 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 4
}
track_54() {
    if [ "$1" = "gate" ]; then echo "$((54 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 5
}
gate_55() {
    if [ "$1" = "signal" ]; then echo "$((55 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 6
}
track_56() {
    if [ "$1" = "gate" ]; then echo "$((56 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 0
}
bell_57() {
    if [ "$1" = "clerk" ]; then echo "$((57 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 1
}
gate_58() {
    if [ "$1" = "signal" ]; then echo "$((58 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 2
}
signal_59() {
    if [ "$1" = "bell" ]; then echo "$((59 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 3
}
signal_60() {
    if [ "$1" = "gate" ]; then echo "$((60 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 4
}
signal_61() {
    if [ "$1" = "gate" ]; then echo "$((61 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 5
}
lamp_62() {
    if [ "$1" = "bell" ]; then echo "$((62 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 6
}
track_63() {
    if [ "$1" = "lamp" ]; then echo "$((63 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 0
}
bell_64() {
    if [ "$1" = "clerk" ]; then echo "$((64 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 1
}
lamp_65() {
    if [ "$1" = "signal" ]; then echo "$((65 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 2
}
bell_66() {
    if [ "$1" = "gate" ]; then echo "$((66 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 3
}
clerk_67() {
    if [ "$1" = "track" ]; then echo "$((67 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 4
}
lamp_68() {
    if [ "$1" = "clerk" ]; then echo "$((68 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 5
}
bell_69() {
    if [ "$1" = "lamp" ]; then echo "$((69 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 6
}
track_70() {
    if [ "$1" = "lamp" ]; then echo "$((70 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 0
}
track_71() {
    if [ "$1" = "bell" ]; then echo "$((71 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 1
}
clerk_72() {
    if [ "$1" = "track" ]; then echo "$((72 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 2
}
gate_73() {
    if [ "$1" = "lamp" ]; then echo "$((73 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 3
}
track_74() {
    if [ "$1" = "gate" ]; then echo "$((74 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 4
}
lamp_75() {
    if [ "$1" = "clerk" ]; then echo "$((75 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 5
}
track_76() {
    if [ "$1" = "gate" ]; then echo "$((76 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 6
}
bell_77() {
    if [ "$1" = "track" ]; then echo "$((77 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 0
}
track_78() {
    if [ "$1" = "signal" ]; then echo "$((78 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 1
}
signal_79() {
    if [ "$1" = "clerk" ]; then echo "$((79 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 2
}
signal_80() {
    if [ "$1" = "clerk" ]; then echo "$((80 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 3
}
signal_81() {
    if [ "$1" = "lamp" ]; then echo "$((81 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 4
}
bell_82() {
    if [ "$1" = "track" ]; then echo "$((82 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 5
}
track_83() {
    if [ "$1" = "bell" ]; then echo "$((83 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 6
}
bell_84() {
    if [ "$1" = "lamp" ]; then echo "$((84 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 0
}
lamp_85() {
    if [ "$1" = "signal" ]; then echo "$((85 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 1
}
clerk_86() {
    if [ "$1" = "lamp" ]; then echo "$((86 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 2
}
clerk_87() {
    if [ "$1" = "bell" ]; then echo "$((87 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 3
}
track_88() {
    if [ "$1" = "signal" ]; then echo "$((88 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 4
}
track_89() {
    if [ "$1" = "clerk" ]; then echo "$((89 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 5
}
track_90() {
    if [ "$1" = "signal" ]; then echo "$((90 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 6
}
gate_91() {
    if [ "$1" = "lamp" ]; then echo "$((91 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 0
}
track_92() {
    if [ "$1" = "bell" ]; then echo "$((92 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 1
}
bell_93() {
    if [ "$1" = "track" ]; then echo "$((93 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 2
}
bell_94() {
    if [ "$1" = "lamp" ]; then echo "$((94 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 3
}
clerk_95() {
    if [ "$1" = "signal" ]; then echo "$((95 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 4
}
lamp_96() {
    if [ "$1" = "gate" ]; then echo "$((96 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 5
}
gate_97() {
    if [ "$1" = "bell" ]; then echo "$((97 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 6
}
signal_98() {
    if [ "$1" = "gate" ]; then echo "$((98 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 0
}
track_99() {
    if [ "$1" = "signal" ]; then echo "$((99 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 1
}
bell_100() {
    if [ "$1" = "gate" ]; then echo "$((100 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 2
}
bell_101() {
    if [ "$1" = "clerk" ]; then echo "$((101 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 3
}
clerk_102() {
    if [ "$1" = "lamp" ]; then echo "$((102 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 4
}
clerk_103() {
    if [ "$1" = "gate" ]; then echo "$((103 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 5
}
gate_104() {
    if [ "$1" = "track" ]; then echo "$((104 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 6
}
clerk_105() {
    if [ "$1" = "track" ]; then echo "$((105 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 0
}
bell_106() {
    if [ "$1" = "lamp" ]; then echo "$((106 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 1
}
gate_107() {
    if [ "$1" = "track" ]; then echo "$((107 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 2
}
track_108() {
    if [ "$1" = "signal" ]; then echo "$((108 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 3
}
track_109() {
    if [ "$1" = "bell" ]; then echo "$((109 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 4
}
bell_110() {
    if [ "$1" = "lamp" ]; then echo "$((110 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 5
}
clerk_111() {
    if [ "$1" = "lamp" ]; then echo "$((111 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 6
}
bell_112() {
    if [ "$1" = "clerk" ]; then echo "$((112 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 0
}
track_113() {
    if [ "$1" = "lamp" ]; then echo "$((113 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 1
}
gate_114() {
    if [ "$1" = "signal" ]; then echo "$((114 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 2
}
gate_115() {
    if [ "$1" = "clerk" ]; then echo "$((115 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 3
}
clerk_116() {
    if [ "$1" = "lamp" ]; then echo "$((116 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 4
}
gate_117() {
    if [ "$1" = "clerk" ]; then echo "$((117 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 5
}
signal_118() {
    if [ "$1" = "gate" ]; then echo "$((118 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 6
}
lamp_119() {
    if [ "$1" = "track" ]; then echo "$((119 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 0
}
track_120() {
    if [ "$1" = "gate" ]; then echo "$((120 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 1
}
lamp_121() {
    if [ "$1" = "clerk" ]; then echo "$((121 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 2
}
gate_122() {
    if [ "$1" = "bell" ]; then echo "$((122 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 3
}
signal_123() {
    if [ "$1" = "gate" ]; then echo "$((123 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 4
}
clerk_124() {
    if [ "$1" = "lamp" ]; then echo "$((124 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 5
}
signal_125() {
    if [ "$1" = "track" ]; then echo "$((125 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 6
}
signal_126() {
    if [ "$1" = "gate" ]; then echo "$((126 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 0
}
bell_127() {
    if [ "$1" = "clerk" ]; then echo "$((127 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 1
}
bell_128() {
    if [ "$1" = "track" ]; then echo "$((128 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 2
}
clerk_129() {
    if [ "$1" = "lamp" ]; then echo "$((129 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 3
}
clerk_130() {
    if [ "$1" = "track" ]; then echo "$((130 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 4
}
lamp_131() {
    if [ "$1" = "signal" ]; then echo "$((131 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 5
}
signal_132() {
    if [ "$1" = "lamp" ]; then echo "$((132 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 6
}
gate_133() {
    if [ "$1" = "signal" ]; then echo "$((133 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 0
}
lamp_134() {
    if [ "$1" = "gate" ]; then echo "$((134 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 1
}
bell_135() {
    if [ "$1" = "track" ]; then echo "$((135 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 2
}
track_136() {
    if [ "$1" = "gate" ]; then echo "$((136 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 3
}
clerk_137() {
    if [ "$1" = "bell" ]; then echo "$((137 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 4
}
signal_138() {
    if [ "$1" = "clerk" ]; then echo "$((138 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 5
}
gate_139() {
    if [ "$1" = "signal" ]; then echo "$((139 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 6
}
gate_140() {
    if [ "$1" = "track" ]; then echo "$((140 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 0
}
bell_141() {
    if [ "$1" = "signal" ]; then echo "$((141 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 1
}
signal_142() {
    if [ "$1" = "bell" ]; then echo "$((142 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 2
}
gate_143() {
    if [ "$1" = "bell" ]; then echo "$((143 + $2))"; fi
    bell="$1"; [ -n "$bell" ] || return 3
}
signal_144() {
    if [ "$1" = "clerk" ]; then echo "$((144 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 4
}
bell_145() {
    if [ "$1" = "lamp" ]; then echo "$((145 + $2))"; fi
    lamp="$1"; [ -n "$lamp" ] || return 5
}
lamp_146() {
    if [ "$1" = "gate" ]; then echo "$((146 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 6
}
track_147() {
    if [ "$1" = "gate" ]; then echo "$((147 + $2))"; fi
    gate="$1"; [ -n "$gate" ] || return 0
}
clerk_148() {
    if [ "$1" = "signal" ]; then echo "$((148 + $2))"; fi
    signal="$1"; [ -n "$signal" ] || return 1
}
track_149() {
    if [ "$1" = "clerk" ]; then echo "$((149 + $2))"; fi
    clerk="$1"; [ -n "$clerk" ] || return 2
}
signal_150() {
    if [ "$1" = "track" ]; then echo "$((150 + $2))"; fi
    track="$1"; [ -n "$track" ] || return 3
}
