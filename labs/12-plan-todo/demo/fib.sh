# fib.sh N: prints the Nth Fibonacci number: 1 1 2 3 5 8 ...
a=0
b=1
i=1
while [ "$i" -lt "$1" ]; do
    c=$((a + b))
    a=$b
    b=$c
    i=$((i + 1))
done
echo "$a"
