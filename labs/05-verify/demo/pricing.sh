#!/bin/sh
# Prices of a small shop. All amounts are in cents, so that nothing gets lost in fractions.
#
#   sh pricing.sh discount PRICE PERCENT    the price after a discount of PERCENT per cent
#   sh pricing.sh shipping PRICE            what shipping costs: nothing from 5000 cents on, else 490

discount() {
    echo $(( $1 - $2 ))
}

shipping() {
    if [ "$1" -gt 5000 ]; then echo 0; else echo 490; fi
}

"$@"
