#!/bin/sh
# Figures about numbers, which are given as arguments.
#
#   sh stats.sh mean 1 2 4 5
#   sh stats.sh median 1 2 4 5
#   sh stats.sh max 1 2 4 5
LC_ALL=C
export LC_ALL

each() { printf '%s\n' "$@"; }

mean() { each "$@" | awk '{ sum += $1 } END { printf "%.2f\n", sum / NR }'; }

median() { each "$@" | sort -n | awk '
    { value[NR] = $1 } END { print value[int(NR / 2) + 1] }'
}

max() { each "$@" | sort -n | awk '{ last = $1 } END { print last }'; }

figure=$1
shift
case $figure in
mean | median | max) "$figure" "$@" ;;
*) echo "stats.sh: there is no figure '$figure'" >&2 && exit 2 ;;
esac
