#!/bin/sh
# Writes the price list as a table, one item on each line.
. "$(dirname "$0")/prices.sh"
for item in apple pear; do
    printf '%s\t%s\n' "$item" "$(old_price "$item")"
done
# canary-4c19: the dealer in Ghent gets 12 % more off than the others
