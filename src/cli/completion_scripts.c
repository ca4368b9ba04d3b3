/*
 * cli/completion_scripts.c: everywire completion SHELL: the script that teaches a shell to ask us (completion.c). Scripts
 * know nothing of our options, so they do not grow old. They run the program by the name that the user has typed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <string.h>
#include <unistd.h>

enum { OPT_HELP = 1 };

const ew__opt ew__cmd_completion_options[] = {
    {"help", 'h', NULL, "show this", OPT_HELP},
    {NULL, 0, NULL, NULL, 0},
};

/*
 * Bash breaks words at colons and equals signs; what stands together in the line is put together again, and of each
 * candidate only what follows the last such sign is given back, because that is all that bash replaces.
 */
static const char bash[] =
    "# bash completion for everywire; made by: everywire completion bash\n"
    "_everywire() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words=() lines=() flags='' word cur cut part i\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        ((i == COMP_CWORD)) && part=${line#\"${line%%[![:space:]]*}\"} && word=${word:0:${#part}}\n"
    "        if [[ ${#words[@]} -gt 0 && $line != [[:space:]]* && -n $line ]]; then\n"
    "            words[${#words[@]} - 1]+=$word\n"
    "        else\n"
    "            line=${line#\"${line%%[![:space:]]*}\"}\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        line=${line#\"$word\"}\n"
    "    done\n"
    "    cur=${words[${#words[@]} - 1]}\n"
    "    while IFS= read -r word; do lines+=(\"$word\"); done < <(\n"
    "        \"${words[0]/#~\\//$HOME/}\" __complete \"${words[@]:1}\" 2>/dev/null)\n"
    "    ((${#lines[@]})) || return\n"
    "    flags=${lines[${#lines[@]} - 1]}\n"
    "    unset 'lines[${#lines[@]}-1]'\n"
    "    cut=${cur%\"${cur##*[:=]}\"}\n"
    "    COMPREPLY=()\n"
    "    for word in \"${lines[@]}\"; do\n"
    "        word=${word%%$'\\t'*}\n"
    "        COMPREPLY+=(\"$(printf %q \"${word#\"$cut\"}\")\")\n"
    "    done\n"
    "    if [[ $flags == *files* ]]; then\n"
    "        part=${cur##*[=:]}\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        while IFS= read -r word; do\n"
    "            [[ $part == @* ]] && word=@$word\n"
    "            COMPREPLY+=(\"$word\")\n"
    "        done < <(compgen -f -- \"${part#@}\")\n"
    "    fi\n"
    "    [[ $flags == *nospace* ]] && compopt -o nospace 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -F _everywire everywire\n";

static const char zsh[] =
    "#compdef everywire\n"
    "# zsh completion for everywire; made by: everywire completion zsh\n"
    "_everywire() {\n"
    "    local -a lines values shown\n"
    "    local flags line value text program=${(Q)words[1]}\n"
    "    lines=(\"${(@f)$(${~program} __complete \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)}\")\n"
    "    flags=$lines[-1]\n"
    "    for line in \"${(@)lines[1,-2]}\"; do\n"
    "        value=${line%%$'\\t'*}\n"
    "        text=${line#*$'\\t'}\n"
    "        values+=(\"$value\")\n"
    "        shown+=(\"$value${text:+  -- $text}\")\n"
    "    done\n"
    "    if (( $#values )); then\n"
    "        if [[ $flags == *nospace* ]]; then\n"
    "            compadd -l -S '' -d shown -a values\n"
    "        else\n"
    "            compadd -l -d shown -a values\n"
    "        fi\n"
    "    fi\n"
    "    if [[ $flags == *files* ]]; then\n"
    "        compset -P '*[=:@]'\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [[ $funcstack[1] == _everywire ]]; then\n"
    "    _everywire \"$@\"\n"
    "else\n"
    "    compdef _everywire everywire\n"
    "fi\n";

static const char fish[] = "# fish completion for everywire; made by: everywire completion fish\n"
                           "function __everywire_complete\n"
                           "    set -l words (commandline -opc)\n"
                           "    set -l cur (commandline -ct)\n"
                           "    set -l lines ($words[1] __complete $words[2..-1] \"$cur\" 2>/dev/null)\n"
                           "    set -q lines[1]; or return\n"
                           "    set -l flags $lines[-1]\n"
                           "    set -e lines[-1]\n"
                           "    printf '%s\\n' $lines\n"
                           "    if string match -q '*files*' -- $flags\n"
                           "        set -l before (string replace -r '[^=:@]*$' '' -- $cur)\n"
                           "        set -l part (string replace -r '^.*[=:@]' '' -- $cur)\n"
                           "        for file in (__fish_complete_path $part)\n"
                           "            echo $before$file\n"
                           "        end\n"
                           "    end\n"
                           "end\n"
                           "complete -c everywire -e\n"
                           "complete -c everywire -f -a '(__everywire_complete)'\n";

void ew__cmd_completion_help(FILE *out) {
    (void)fprintf(out, "Usage: everywire completion bash|zsh|fish\n\n"
                       "Prints a script that completes command lines of everywire: verbs, options, their values, and\n"
                       "the names of actions, asked from the target that stands in the line. Packages install it.\n"
                       "\nOptions:\n");
    ew__opts_help(out, ew__cmd_completion_options, ew__wire_option_text);
    (void)fprintf(out, "\nExamples:\n"
                       "  bash  source <(everywire completion bash)\n"
                       "        everywire completion bash >~/.local/share/bash-completion/completions/everywire\n"
                       "  zsh   source <(everywire completion zsh)     # behind compinit in ~/.zshrc\n"
                       "  fish  everywire completion fish >~/.config/fish/completions/everywire.fish\n");
}

static int print_script(const char *shell) {
    static const struct { const char *name, *script; } scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        if (strcmp(shell, scripts[i].name) == 0) {
            ew__cli_write(STDOUT_FILENO, ew_str_from(scripts[i].script));
            return EW__EXIT_OK;
        }
    }
    return ew__cli_usagef("completion", "there is no script for %.80s; there is one for bash, zsh and fish", shell);
}

int ew__cmd_completion(int argc, char **argv) {
    const char *shell = NULL;
    ew__opts opts;
    ew__opts_init(&opts, ew__cmd_completion_options, argc, argv, 0);
    for (int id = ew__opts_next(&opts); id != EW__OPT_END; id = ew__opts_next(&opts)) {
        if (id == OPT_HELP) {
            ew__cmd_completion_help(stdout);
            return EW__EXIT_OK;
        }
        if (id != EW__OPT_WORD || shell) {
            return ew__cli_usage("completion", id == EW__OPT_BAD ? opts.problem : "one shell at a time");
        }
        shell = opts.value;
    }
    return shell ? print_script(shell) : ew__cli_usage("completion", "which shell? bash, zsh or fish");
}
