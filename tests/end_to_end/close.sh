# shellcheck shell=sh
# Sourced after expect.sh by tests of sums in another order.

# numbers CHECKPOINT: its tensors, as f32.
numbers() {
    length=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c +$((length + 9)) "$1" | od -An -v -w4 -tf4
}

# expect_close CHECKPOINT CHECKPOINT: no number differs by more than 1e-5 of its
# size, or of 0.1.
expect_close() {
    numbers "$1" >x
    numbers "$2" >y
    paste x y | awk '
    function abs(v) { return v < 0 ? -v : v }
    { size = abs($1) > 0.1 ? abs($1) : 0.1
      if (abs($1 - $2) / size > most) most = abs($1 - $2) / size }
    END { print "of " NR " numbers, the largest difference is " most + 0
          exit !(NR > 1000 && most <= 1e-5) }' ||
        fail "$1 and $2 differ"
}
