# Functions for main.sh.
greet() {
    echo "hello, ${1:-world}"
}
