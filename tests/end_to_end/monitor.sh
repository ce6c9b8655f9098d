#!/bin/sh
# Metrics of evaluations lower a learning rate, keep the best checkpoint and end
# the run; a run that is interrupted does the same.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

expect 0 "$SINTER" build "$here/monitor.net" -o net
expect 0 ./net --out=whole
expect_says "has not improved since step"
expect_says "plateau is now 0.25 times its start"
expect 0 python3 "$here/monitor.py" whole
best=$(awk '{ printf "%08d", $NF }' out)

# Interrupted at an evaluation, and between two.
expect 0 ./net --out=parts --steps=60
expect 0 ./net --out=parts --resume --steps=50
expect 0 ./net --out=parts --resume
expect 0 python3 "$here/monitor.py" parts
expect_equal "$(newest whole)" "$(newest parts)"
expect_equal "whole/best-$best.safetensors" "parts/best-$best.safetensors"

# The best weights give the best accuracy.
expect 0 ./net --eval-only --resume="whole/best-$best.safetensors"
accuracy=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)
expect 0 ./net --eval-only --out=whole
[ "${accuracy%.*}" -ge "$(sed -n 's/.*test accuracy \([0-9]*\).*/\1/p' out)" ] ||
    fail "the best checkpoint has accuracy $accuracy"

# A run that continues from an earlier checkpoint sets later ones aside.
first=$(find whole -name 'step-*' | sort | head -n 1)
expect 0 ./net --out=whole --resume="$first"
expect_equal "whole/best-$best.safetensors" "parts/best-$best.safetensors"
[ -f "whole/previous-best-$best.safetensors" ] ||
    fail "the best checkpoint of the earlier part is gone"
