# Completion for fish. Add a farm program of yours with: complete -c PROGRAM -a '(__kilter_complete farm)'
function __kilter_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (kilter complete $argv[1] $words[2..-1] "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path $current
        else
            echo $line
        end
    end
end
complete -c kilter -f -a '(__kilter_complete kilter)'
