#!/bin/sh
# Holds a shell script against the release checklist: sh check.sh FILE
awk '
    function miss(what) { print "line " NR ": " what; missed = 1 }
    NR == 1 && $0 != "#!/bin/sh" { miss("is not #!/bin/sh") }
    NR == 2 && !/^# [^ ]/ { miss("is no comment that says what the script does") }
    /\t/ { miss("has a tab") }
    length($0) > 100 { miss("has more than 100 characters") }
    END { if (NR < 2) miss("there are too few lines"); exit missed }
' "$1"
