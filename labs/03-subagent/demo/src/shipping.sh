# Shipping in cents, free from a total on.
shipping() { if [ "$1" -ge 5000 ]; then echo 0; else echo 490; fi; }
