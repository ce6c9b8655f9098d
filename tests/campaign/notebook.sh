#!/bin/sh
# Jupyter executes examples/python/first.ipynb; tests/python/python.sh runs its
# cells without a kernel.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
python=$SINTER_PYTHON
"$python" -c 'import nbclient, ipykernel, numpy' 2>/dev/null || exit 77
export HOME="$work" PYTHONPATH="$SINTER_SOURCE/python"
export PYTHONDONTWRITEBYTECODE=1

cat >execute.py <<'END'
import sys
import nbclient
import nbformat
notebook = nbformat.read(sys.argv[1], 4)
nbformat.validate(notebook)
nbclient.NotebookClient(notebook, timeout=120).execute()
for cell in notebook.cells:
    for output in cell.get("outputs", []):
        print(output.get("text", output))
END
expect 0 "$python" execute.py "$SINTER_SOURCE/examples/python/first.ipynb"
expect_says 'accuracy 9[0-9].*after 320 updates'
