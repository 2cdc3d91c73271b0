"""`council completion`: the script that a shell sources to complete `council`.

Written out here because typer's own `--show-completion` prints the script of the shell it runs in, whatever it is asked.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

VARIABLE = "_COUNCIL_COMPLETE"
Shell = Literal["bash", "zsh", "fish"]

# typer answers `council` with completions when _COUNCIL_COMPLETE is set, in the words that each shell's script expects.
_SCRIPTS: dict[Shell, str] = {
    "bash": """\
# council completion for bash. In ~/.bashrc: source <(council completion bash)
_council_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _COUNCIL_COMPLETE=complete_bash "$1"))
}
complete -o default -F _council_completion council
""",
    "zsh": """\
#compdef council
# council completion for zsh. In ~/.zshrc, after compinit: source <(council completion zsh)
_council_completion() {
    eval $(_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _COUNCIL_COMPLETE=complete_zsh council)
}
compdef _council_completion council
""",
    "fish": """\
# council completion for fish: council completion fish > ~/.config/fish/completions/council.fish
function __council_complete
    env _COUNCIL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \\
        _TYPER_COMPLETE_ARGS=(commandline -cp) council
end
complete --command council --no-files --arguments "(__council_complete get-args)" \\
    --condition "__council_complete is-args"
""",
}


def prepare() -> None:
    """Teaches typer the shells: with `add_completion=False`, which keeps its own two options away, it knows none."""
    from typer import completion as typers

    vars(typers)["completion_init"]()


def completion(shell: Annotated[Shell, typer.Argument(help="Which shell.")]) -> None:
    typer.echo(_SCRIPTS[shell], nl=False)
