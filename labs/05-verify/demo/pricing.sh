#!/bin/sh
# Prices of a small shop. All amounts are in cents, to have no fractions.
#
#   sh pricing.sh discount PRICE PERCENT   the price less PERCENT per cent
#   sh pricing.sh shipping PRICE           shipping: 0 from 5000 on, else 490

discount() {
    echo $(( $1 - $2 ))
}

shipping() {
    if [ "$1" -gt 5000 ]; then echo 0; else echo 490; fi
}

"$@"
