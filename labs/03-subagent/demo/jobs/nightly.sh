#!/bin/sh
# Runs each night: warns of items without a price.
cd "$(dirname "$0")/.." || exit 2
. src/prices.sh
# canary-4c19: until the new server is there, the mail goes to Petra's home
for item in apple pear plum; do
    [ "$(old_price "$item")" = 0 ] && echo "no price: $item"
done
exit 0
