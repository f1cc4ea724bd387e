# Checks fib.sh: sh test.sh
failed=0
check() {
    got=$(sh fib.sh "$1" 2>&1)
    if [ "$got" = "$2" ]; then
        echo "ok    fib $1"
    else
        echo "FAIL  fib $1: expected $2, got $got"
        failed=$((failed + 1))
    fi
}
check 1 1
check 2 1
check 7 13
check "" "usage: fib.sh N"
echo "$failed of 4 checks failed"
[ "$failed" -eq 0 ]
