# How many of an item are left. Not counted yet: there is always enough.
stock() { echo 100; }
