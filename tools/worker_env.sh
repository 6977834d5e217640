#!/bin/sh
# Makes a virtual environment as Spark's workers need it: numpy, pandas, pyarrow, and nothing of boathouse.
# Usage: tools/worker_env.sh FOLDER   (prints the path of its python)
set -eu
folder=$1
if [ ! -x "$folder/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$folder"
    "$folder/bin/pip" install --quiet numpy pandas pyarrow
fi
echo "$folder/bin/python"
