# shellcheck shell=sh
# Sourced by gpu.sh: finds compiler, libraries and headers of this machine, and
# describes it.

# append VARIABLE FOLDER
append() {
    eval "$1=\${$1:+\$$1:}\$2"
    # shellcheck disable=SC2163 # the name of a variable
    export "$1"
}

# NVIDIA's libraries and programs from Python packages: nvidia/*/lib beside
# PyTorch.
python_folders() {
    "$PYTHON" - <<'END'
import glob, os, sys, sysconfig
paths = dict.fromkeys([sysconfig.get_path("purelib"), *sys.path])
wanted = ("libcudnn.so", "libnvrtc.so", "libcublasLt.so", "libnvtx3interop.so",
          "libnvjpeg.so")
for path in paths:
    for folder in sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib"))):
        if any(name.startswith(wanted) for name in os.listdir(folder)):
            print(folder)
END
}

# unpack_packages DIR: unpacks the packages of bench/carry.sh once.
unpack_packages() {
    there=$1/root
    for file in "$1"/*.deb; do
        if [ ! -f "$file" ] || [ -f "$there/$(basename "$file").done" ]; then
            continue
        fi
        mkdir -p "$there"
        if command -v dpkg-deb >/dev/null; then
            dpkg-deb -x "$file" "$there"
        else
            (cd "$there" && ar x "$file" && tar xf data.tar.* && rm -f data.tar.* \
                control.tar.* debian-binary)
        fi && : >"$there/$(basename "$file").done"
    done
    [ -d "$there/usr" ] || return
    for folder in "$there"/usr/include/*-linux-gnu "$there/usr/include"; do
        [ -d "$folder" ] || continue
        append C_INCLUDE_PATH "$folder"
        append CMAKE_INCLUDE_PATH "$folder"
    done
    for folder in "$there"/usr/lib/*-linux-gnu "$there"/lib/*-linux-gnu; do
        [ -d "$folder" ] || continue
        append LIBRARY_PATH "$folder"
        append CMAKE_LIBRARY_PATH "$folder"
        append LD_LIBRARY_PATH "$folder"
    done
}

# The first existing command or file of the arguments.
first_of() {
    for program in "$@"; do
        command -v "$program" && return
    done
}

# places_find PACKAGES: sets the search paths of the compiler, CMake and the
# loader, and PYTHON and SANITIZER, empty if there is none.  LD_LIBRARY_PATH
# comes first.
places_find() {
    PYTHON=${PYTHON:-$(first_of python3 python)}
    [ -z "$PYTHON" ] || for folder in $(python_folders); do
        append LD_LIBRARY_PATH "$folder"
        [ ! -d "${folder%/lib}/bin" ] || append PATH "${folder%/lib}/bin"
    done
    # The driver's folder in containers, if it is not found otherwise.
    for folder in /usr/local/nvidia /usr/local/cuda; do
        [ ! -d $folder/bin ] || append PATH $folder/bin
    done
    [ ! -e /usr/local/nvidia/lib64/libcuda.so.1 ] ||
        append LD_LIBRARY_PATH /usr/local/nvidia/lib64
    [ -z "$1" ] || unpack_packages "$1"
    SANITIZER=$(first_of compute-sanitizer \
        /usr/local/cuda*/compute-sanitizer/compute-sanitizer \
        /opt/nvidia/*/compute-sanitizer)
    export PYTHON SANITIZER LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
}

# library_files: the libraries that trainers open, as the loader finds them, and
# their neighbours.
library_files() {
    {
        for folder in $(echo "$LD_LIBRARY_PATH" | tr : ' '); do
            ls "$folder"/lib* 2>/dev/null
        done
        ldconfig -p | sed -n 's/.* => //p'
    } | grep -E '/lib(cudnn|nvrtc|cublasLt)[^/]*[.]so[.0-9]*$' | awk '
        match($0, /[^\/]*$/) {
            folder = substr($0, 1, RSTART - 1)
            name = substr($0, RSTART + 3, 4)
            if (!(name in first))
                first[name] = folder
            if (first[name] == folder)
                print
        }' | xargs -r realpath -e -q | sort -u
}

# libraries_read: a row of their size and the time to read them, after which
# they are in memory; then PyTorch's.
libraries_read() {
    files=$(library_files)
    [ -n "$files" ] || return
    from=$(date +%s%N)
    bytes=$(echo "$files" | xargs cat | wc -c)
    row "libraries read" $((bytes >> 20)) MiB \
        "in $((($(date +%s%N) - from) / 1000000)) ms"
    [ -z "$PYTHON" ] || "$PYTHON" -c 'import torch' 2>/dev/null
}

# smi FIELD: a field of nvidia-smi.
smi() {
    ordinal=${DEVICE#cuda}
    timeout 10 nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits \
        --id="${ordinal#:}" 2>/dev/null
}

gpu_slug() {
    name=$(smi name | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
    echo "${name:-unknown}"
}

# pytorch_version: without the seconds of importing it from a cold disk.
pytorch_version() {
    "$PYTHON" - <<'END'
import importlib.util, os, runpy
folder = os.path.dirname(importlib.util.find_spec("torch").origin)
print(runpy.run_path(os.path.join(folder, "version.py"))["__version__"])
END
}

# report NAME UNIT COMMAND...: a row of its first line of output, if there is
# any.
report() {
    name=$1 unit=$2
    shift 2
    line=$("$@" 2>/dev/null | head -n 1 | tr '\t' ' ')
    [ -z "$line" ] || row "$name" "$line" "$unit"
}

# commit_of PACKAGES: the sources' commit, or without a history that of the
# packages, if the files still match.
commit_of() {
    git -c safe.directory='*' -C "$ROOT" describe --always --dirty \
        --abbrev=40 && return
    read -r commit <"$1/commit" || return
    (cd "$ROOT" && sha256sum --status -c "$1/sources") ||
        commit=${commit%-dirty}-dirty
    echo "$commit"
}

# describe_machine PACKAGES
describe_machine() {
    report date '' date -u +%Y-%m-%dT%H:%M:%SZ
    report commit '' commit_of "$1"
    report name '' smi name
    report driver_version '' smi driver_version
    report memory.total MiB smi memory.total
    report clocks.max.sm MHz smi clocks.max.sm
    report clocks.max.memory MHz smi clocks.max.memory
    report power.limit W smi power.limit
    report persistence_mode '' smi persistence_mode
    report kernel '' uname -sr
    report processor '' sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo
    report cores '' nproc
    report compiler '' "${CC:-cc}" --version
    report nvcc '' sh -c 'nvcc --version | grep release'
    [ -z "$PYTHON" ] || report pytorch '' pytorch_version
}
