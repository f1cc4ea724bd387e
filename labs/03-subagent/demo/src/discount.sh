# Discounts: PERCENT off a price in cents.
discount() { echo $(($1 - $1 * $2 / 100)); }
