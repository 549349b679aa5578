# SPDX-License-Identifier: MIT
# fish completion for refrain. The words come from the program's own tables.

# The mountpoints of refrain.
function __refrain_mounts
    while read --local --delimiter ' ' source path kind rest
        test "$kind" = fuse.refrain; and printf '%b\n' $path
    end </proc/self/mounts
end

# What may stand for an argument called $argv[1] ("DIR:SIZE", "always|never").
function __refrain_argument
    set --local current (commandline --current-token)
    switch $argv[1]
        case 'HOST*'
            __fish_print_hostnames
        case '*|*'
            string split '|' $argv[1]
        case FILE
            __fish_complete_path $current
        case 'DIR*'
            __fish_complete_directories $current ''
        case GROUP
            __fish_complete_groups
    end
end

function __refrain
    set --local words (commandline --tokenize --cut-at-cursor \
        --current-process)
    set --local current (commandline --current-token)
    set --local program $words[1]
    if test (count $words) -eq 1; or test "$words[-1]" = help
        $program --words 2>/dev/null
        printf '%s\n' help --help --version
        return
    end
    set --local options ($program --words $words[2] 2>/dev/null)
    for option in $options
        set --local parts (string split --max 1 ' ' -- $option)
        if test "$parts[1]" = "$words[-1]"; and set --query parts[2]
            __refrain_argument $parts[2]
            return
        end
    end
    if string match --quiet -- '-*' $current
        string replace --regex ' .*' '' -- $options
        return
    end
    switch $words[2]
        case umount upgrade status warm refresh fault verify plan trace doctor
            __refrain_mounts
            test -z "$current"; or __fish_complete_directories $current ''
        case peers
            __fish_print_hostnames
        case top exporter
        case load
            __fish_complete_path $current
        case '*'
            __fish_complete_directories $current ''
    end
end

complete --command refrain --no-files --arguments '(__refrain)'
