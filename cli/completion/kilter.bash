# Completion for bash. Add a farm program of yours with: complete -o default -F _kilter_farm PROGRAM
_kilter_complete() { # kilter|farm
    local line rest current=${COMP_WORDS[COMP_CWORD]}
    [ "$current" != = ] || current=
    COMPREPLY=()
    while IFS=$'\t' read -r line rest; do
        if [ "$line" = :files ]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
        else
            COMPREPLY+=("$line")
        fi
    done < <(kilter complete "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
_kilter() { _kilter_complete kilter; }
_kilter_farm() { _kilter_complete farm; }
complete -F _kilter kilter
