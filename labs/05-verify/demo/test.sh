#!/bin/sh
# Four checks of pricing.sh. The exit status is 0 only if all of them hold.
cd "$(dirname "$0")" || exit 2
failed=0

check() { # WANTED FUNCTION ARGUMENTS...
    wanted=$1
    shift
    got=$(sh pricing.sh "$@")
    if [ "$got" = "$wanted" ]; then
        echo "ok    $*: $got"
    else
        echo "FAIL  $*: wanted $wanted, got $got"
        failed=$((failed + 1))
    fi
}

check 1800 discount 2000 10
check 500 discount 999 50
check 0 shipping 5000
check 490 shipping 4999

echo "$failed of 4 checks failed"
[ "$failed" = 0 ]
