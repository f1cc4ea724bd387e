#!/bin/sh
# A calculator for whole numbers: sh calc.sh 10 sub 4

case $2 in
add) echo $(($1 + $3)) ;;
sub) echo $(($1 + $3)) ;;
mul) echo $(($1 * $3)) ;;
div) echo $(($1 / $3)) ;;
*)
    echo "usage: sh calc.sh A add|sub|mul|div B" >&2
    exit 2
    ;;
esac
