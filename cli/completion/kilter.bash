# Completion for bash. Add a farm program of yours with: complete -o default -F _kilter_farm PROGRAM
_kilter_complete() { # kilter|farm
    local line rest words kept
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} != *' ' ]] || words+=('')
    kept=${words[-1]%"${words[-1]##*=}"} # bash replaces only the part of a word after its last "=", so the answer must leave out the part before
    COMPREPLY=()
    while IFS=$'\t' read -r line rest; do
        if [ "$line" = :files ]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${words[-1]#"$kept"}")
        else
            COMPREPLY+=("${line#"$kept"}")
        fi
    done < <(kilter complete "$1" "${words[@]:1}" 2>/dev/null)
}
_kilter() { _kilter_complete kilter; }
_kilter_farm() { _kilter_complete farm; }
complete -F _kilter kilter
