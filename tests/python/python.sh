#!/bin/sh
# The Python module: predictions, updates and texts are the trainer's, nothing
# is copied, mistakes are exceptions; docs/python.md and the notebook work.
# Trainers run for less time than they compile.
export OPTIMISATION="${OPTIMISATION--Og}"
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -z "${CFLAGS:-}" ] || exit 77
python=$SINTER_PYTHON
"$python" -c 'import numpy' 2>/dev/null || exit 77
export PYTHONPATH="$SINTER_SOURCE/python" PYTHONDONTWRITEBYTECODE=1

expect 0 "$SINTER" build "$models/mlp.net" --set batch=100 -o mlp
expect 0 "$SINTER" build "$models/gpt_nano.net" --set vocabulary=256 \
    --set batch=2 --set 'layers=[1]' --set width=24 -o writer
expect 0 "$python" "$SINTER_SOURCE/tests/python/sinter_test.py" "$models"
expect 0 "$python" -m sinter version
expect_says '^sinter [0-9]'

# The cells of the notebook in their order.
"$python" -c '
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        print("".join(cell["source"]) + "\n")
' "$SINTER_SOURCE/examples/python/first.ipynb" >notebook.py
[ "$(wc -l <notebook.py)" -gt 30 ] || fail "the notebook has no cells"
expect 0 "$python" notebook.py
expect_says 'accuracy 9[0-9].*after 320 updates'

unset PYTHONPATH
PATH=$(dirname "$python"):$PATH python3 "$SINTER_SOURCE/tests/docs/walk.py" \
    "$SINTER_SOURCE/docs/python.md"
