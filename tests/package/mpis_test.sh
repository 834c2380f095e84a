#!/usr/bin/env bash
# Check that the library for each MPI works under its own MPI, and under the other MPI prints an error. Programs with farms need neither of
# these libraries.
# usage: mpis_test.sh SOURCE BUILD CC [MPI MPICC MPIEXEC]…     MPI is openmpi or mpich; some tests need both
set -euo pipefail
source=$1 build=$2 cc=$3
shift 3
fail() { echo "mpis_test: $*" >&2; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 KILTER_RECORD=none
unset KILTER_MPI LD_LIBRARY_PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/kilter
"${CMAKE:-cmake}" --install "$build" --prefix "$prefix" >/dev/null
libraries=$(dirname "$(find "$prefix" -name 'libkilter.so')")
declare -A mpicc mpiexec title=([openmpi]="Open MPI" [mpich]=MPICH)
mpis=()
while [ $# -gt 0 ]; do
    mpis+=("$1")
    mpicc[$1]=$2 mpiexec[$1]=$3
    shift 3
done
export PKG_CONFIG_PATH=$libraries/pkgconfig

compile() { # compile COMPILER SOURCE PROGRAM FLAG…: compile a program. The flags come last, and the linker keeps all libraries that they name.
    "$1" -std=c11 -D_GNU_SOURCE -Wl,--no-as-needed "$2" -o "$work/$3" -Wl,-rpath,"$libraries" "${@:4}"
}
flags_of() { # flags_of PACKAGE: store the package's flags for compiler and linker in the array `flags`
    eval "flags=($(pkg-config --cflags --libs "$1"))"
}
# When one rank ends with an error, the launcher ends the other ranks and may lose their output. So the ranks themselves write their
# output to the file.
launch() { # launch MPI PROGRAM ARGUMENT…: run a program on three ranks; the output goes to $work/out, and the exit code to $code
    local flags=()
    [ "$1" = mpich ] || flags=(--oversubscribe --bind-to none)
    code=0
    : >"$work/out"
    timeout 60 "${mpiexec[$1]}" "${flags[@]}" -n 3 sh -c 'exec "$@" >>"$0" 2>&1' "$work/out" "$work/$2" "${@:3}" \
        >"$work/launcher" 2>&1 </dev/null || code=$?
    cat "$work/launcher" >>"$work/out"
}
says() { # says WHAT SENTENCE: fail unless the sentence was printed, the exit code is not 0, and no rank was killed by a signal
    [ "$code" -ne 0 ] || fail "$1 ended with exit code 0: $(cat "$work/out")"
    grep -qF -- "$2" "$work/out" || fail "$1 does not print the words $2: $(cat "$work/out")"
    ! grep -qiE 'signal|segmentation|Invalid' "$work/out" || fail "$1: $(cat "$work/out")"
}

# --- programs that need no MPI do not load an MPI library
flags_of kilter
compile "$cc" "$source/examples/01_squares.c" squares "${flags[@]}" -lm
for file in "$work/squares" "$prefix"/bin/* "$libraries/libkilter.so"; do
    case $file in # the names of programs with loops end with their MPI; they may load no other MPI
    *-openmpi) ! ldd "$file" | grep libmpich || fail "$file loads MPICH" ;;
    *-mpich) ! ldd "$file" | grep -E 'libmpi[.]|libopen-(rte|pal)' || fail "$file loads Open MPI" ;;
    *) ! ldd "$file" | grep -E 'libmpi|libopen-(rte|pal)|libpmi' || fail "$file loads MPI" ;;
    esac
    ! ldd "$file" | grep 'not found' || fail "$file cannot find these libraries"
done

# --- kilter watch finds its library for each MPI beside the installed command
for mpi in "${mpis[@]}"; do
    "$prefix/bin/kilter" watch --mpi "$mpi" true 2>"$work/out" || fail "kilter watch --mpi $mpi failed: $(cat "$work/out")"
    grep -qF "no process of 'true' called MPI_Init" "$work/out" || fail "kilter watch --mpi $mpi did not find its library: $(cat "$work/out")"
done

# --- the library for each MPI exports the functions of kilter/loop.h, and needs no internal names of libkilter
for mpi in "${mpis[@]}"; do
    nm -D --defined-only --format=posix "$libraries/libkilter-$mpi.so" | awk '{ print $1 }' | LC_ALL=C sort >"$work/exported"
    { "$source/tools/public-functions" "$prefix/include/kilter/loop.h"; echo kl_mpi_library_linked; } | LC_ALL=C sort >"$work/declared"
    LC_ALL=C diff "$work/declared" "$work/exported" >"$work/difference" ||
        fail "the functions declared (<) and exported (>) differ for libkilter-$mpi:"$'\n'"$(grep '^[<>]' "$work/difference")"
    flags_of "kilter-$mpi"
    compile "$cc" "$source/tests/package/outside_loop.c" "loop-$mpi" "${flags[@]}"
    compile "${mpicc[$mpi]}" "$source/tests/package/outside_loop.c" "loop-by-wrapper-$mpi" "${flags[@]}"
done

# --- programs with each library run under the launcher of its MPI: loops, and a farm program that is not linked with MPI
for mpi in "${mpis[@]}"; do
    for program in "loop-$mpi" "loop-by-wrapper-$mpi"; do
        launch "$mpi" "$program" run
        [ "$code" -eq 0 ] && grep -qx 'a loop on 3 ranks' "$work/out" || fail "the loop program $program ended with exit code $code: $(cat "$work/out")"
    done
    launch "$mpi" squares --transport mpi
    [ "$code" -eq 0 ] && diff "$source/examples/01_squares.out" "$work/out" >/dev/null ||
        fail "a farm under $mpi ended with exit code $code: $(cat "$work/out")"
    if [ -e "$prefix/bin/kilter-sp" ]; then
        ln -sf "$prefix/bin/kilter-sp" "$work/kilter-sp"
        lands=$source/apps/sp/problems/lands/lands
        launch "$mpi" kilter-sp evaluate "$lands".{cor,tim,sto} --at "$lands.at" --scenarios 100 --json --transport mpi
        [ "$code" -eq 0 ] && grep '"estimate_bits"' "$work/out" >/dev/null ||
            fail "kilter-sp under $mpi ended with exit code $code: $(cat "$work/out")"
    fi
done

# --- programs with each library print an error under the launcher of the other MPI
other() { for mpi in "${mpis[@]}"; do [ "$mpi" = "$1" ] || echo "$mpi"; done; }
for mpi in "${mpis[@]}"; do
    for other in $(other "$mpi"); do
        launch "$other" "loop-$mpi" run
        says "a loop for $mpi under the launcher of $other" \
            "opening a loop: the launcher belongs to ${title[$other]}, but this program is linked with ${title[$mpi]}; start it with ${title[$mpi]}'s mpi"

        flags_of kilter
        compile "${mpicc[$mpi]}" "$source/examples/01_squares.c" "squares-$mpi" "${flags[@]}" -lm
        launch "$mpi" "squares-$mpi" --transport mpi
        [ "$code" -eq 0 ] || fail "a farm linked with $mpi ended with exit code $code: $(cat "$work/out")"
        launch "$other" "squares-$mpi" --transport mpi
        says "a farm linked with $mpi under the launcher of $other" \
            "the launcher belongs to ${title[$other]}, but this program is linked with ${title[$mpi]}; start it with ${title[$mpi]}'s mpi"
        KILTER_MPI=$other launch "$mpi" "squares-$mpi" --transport mpi
        says "a farm linked with $mpi that is told $other" "KILTER_MPI says ${title[$other]}, but this program is linked with ${title[$mpi]}"

        compile "${mpicc[$mpi]}" "$source/tests/package/outside_loop.c" "mixed-$mpi" "-I$prefix/include" "-L$libraries" \
            "-lkilter-$other" -lkilter
        for launcher in "${mpis[@]}"; do
            launch "$launcher" "mixed-$mpi" run
            says "a program for $mpi linked with libkilter-$other, under the launcher of $launcher" \
                "opening a loop: the program uses ${title[$mpi]}, but is linked with Kilter's library for ${title[$other]}"
        done
    done
done

# --- a farm prints an error if the library for its MPI is missing, cannot be loaded, or is of another version
for mpi in "${mpis[@]}"; do
    KILTER_MPI=lam launch "$mpi" squares --transport mpi
    says "an MPI nobody knows" "KILTER_MPI: Kilter does not know the MPI 'lam'"
    soname=$(objdump -p "$libraries/libkilter-$mpi.so" | awk '/SONAME/ { print $2 }')
    rm "$libraries/$soname"
    launch "$mpi" squares --transport mpi
    says "no library for $mpi" "Kilter's library for ${title[$mpi]} cannot be loaded ($soname: "
    echo 'const struct { const char *version; } kl_mpi_library_linked = {"0.0.9"};' >"$work/old.c"
    "$cc" -shared -fPIC "$work/old.c" -o "$libraries/$soname"
    launch "$mpi" squares --transport mpi
    says "an old library for $mpi" "Kilter's library for MPI has version 0.0.9, but libkilter has version "
    echo 'no library' >"$libraries/$soname"
    launch "$mpi" squares --transport mpi
    says "a broken library for $mpi" "$libraries/$soname: file too short"
done
