#!/bin/sh
# Data that are not images: tokens from a file, numbers and targets that are
# drawn; and images that are mixed while they train.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

# falls FILE: the last training row's loss is below the first one's.
falls() {
    grep '"split":"train"' "$1" | sed 's/.*"loss":\([-0-9.e+]*\).*/\1/' |
        awk 'NR == 1 { first = $1 } { last = $1 }
             END { exit !(NR > 1 && last < first) }' || {
        cat "$1" >&2
        fail "the loss does not fall"
    }
}

cat >tokens.net <<'NET'
model Tokens(x: i32[N, 8]) -> f32[N, 8, 32] {
  x |> embedding(32, 8) |> linear(32)
}

train Tokens {
  data      = tokens("text", length=8, vocabulary=32)
  batch     = 8, drop_last
  epochs    = 10
  loss      = mean(cross_entropy(output, label))
  optimizer = adam(lr=1e-2)
}
NET
expect 0 "$SINTER" build tokens.net -o tokens
i=0
while [ $i -lt 60 ]; do
    printf '\003\001\004\001\005\011\002\006\005\003\005\010\011\007'
    i=$((i + 1))
done >text
expect 0 ./tokens --out tokens.run --metrics=tokens.jsonl
falls tokens.jsonl
printf '\040' >>text
expect 3 ./tokens --out other.run
expect_says 'text: token 840 is 32, but the vocabulary has 32: .* --set data.vocabulary=N'
expect 0 ./tokens --data synthetic:8 --out drawn.run --metrics=drawn.jsonl
falls drawn.jsonl

cat >targets.net <<'NET'
import "std/vision.net" { cutmix, mixup }

model Targets(x: f32[N, 8, 8, 2]) -> f32[N, 5] {
  x |> conv(4, 3) |> relu |> flatten |> linear(5)
}

train Targets {
  data      = npy("nowhere", targets)
  input     = data.train |> cutmix(3, p=0.2) |> mixup(0.2, p=0.2)
  batch     = 16
  epochs    = 20
  loss      = mean(mse(output, label))
  optimizer = adam(lr=1e-2)
}
NET
expect 0 "$SINTER" build targets.net -o targets
expect 3 ./targets --out targets.run
expect_says 'no data in nowhere'
expect 0 ./targets --data synthetic:16 --out targets.run --metrics=t.jsonl
falls t.jsonl
expect 2 ./targets --data synthetic:0 --out none.run
expect_says 'synthetic:0: expected a number of samples from 1'
exit 0
