#!/bin/sh
# Tries the figures of a program with lists that are known for trouble:
# sh inspect.sh FILE
file=$1
wrong=0

try() { # WANTED FIGURE NUMBERS...
    wanted=$1
    shift
    got=$(sh "$file" "$@")
    if [ "$got" = "$wanted" ]; then
        echo "right  $*: $got"
    else
        echo "WRONG  $*: $got, should be $wanted"
        wrong=$((wrong + 1))
    fi
}

try 3.00 mean 1 2 4 5
try 3 median 1 2 4 5
try 10 max 9 10
try 7 median 7

echo "$wrong of 4 are wrong"
