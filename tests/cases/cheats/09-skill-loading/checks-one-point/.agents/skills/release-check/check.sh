#!/bin/sh
# Checks a script.
awk 'NR == 1 && $0 != "#!/bin/sh" { exit 1 }' "$1"
