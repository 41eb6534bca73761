# Completion for fish of lime, limefs and the other programs. The programs print the candidates:
# PROGRAM --complete WORD... (src/lime/include/complete.h).

function __lime_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l typed (string replace -r '^~/' "$HOME/" -- $words[2..-1] "$word")
    set -l candidates ($words[1] --complete $typed 2>/dev/null)
    if set -q candidates[1]
        printf '%s\n' $candidates
    else
        set -l before (string match -r '^-.*=' -- "$word")
        __fish_complete_path (string replace -r '^-.*=' '' -- "$word") | string replace -r '^' -- "$before"
    end
end

for program in lime limefs limefs-io lime-bench lime-checkpoint
    complete -c $program -f -a '(__lime_complete)'
end
complete -c limefs-run -f -n 'string match -q -- "-*" (commandline -ct)' -a '(__lime_complete)'
complete -c limefs-run -f -n 'not string match -q -- "-*" (commandline -ct)' -a '(__fish_complete_subcommand)'
