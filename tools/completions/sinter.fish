# Completions of sinter for fish.
function __sinter_complete
    set -l words (commandline -opc) "$(commandline -ct)"
    $words[1] complete -- $words[2..]
end
complete -c sinter -a '(__sinter_complete)'
