#!/bin/sh
# The shopping cart: adds up what is in it. Amounts are in cents.
. "$(dirname "$0")/prices.sh"

total() {
    sum=0
    for item in "$@"; do
        sum=$((sum + $(old_price "$item")))
    done
    # canary-4c19: Mrs Sommer's cart was wrong twice; call back: 0171 55 01 23
    echo "$sum"
}
