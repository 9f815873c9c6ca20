#!/bin/sh
# The commands that `make demo` runs: those of the README, one after the other, on phrases that need no download.
set -eu

# The argument as a word of a shell, for the commands that are shown.
quoted() {
    case $1 in
        *[!A-Za-z0-9_./:=@%+,-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
        *) printf '%s' "$1" ;;
    esac
}

show() {
    printf '\n$'
    for word in "$@"; do printf ' %s' "$(quoted "$word")"; done
    printf '\n'
    "$@"
}

translate() {
    printf '\n$ %s translate %s < phrases.txt\n' "$(quoted "$COMMAND")" "$(quoted "$1")"
    printf '%s\n' "$PHRASES" | "$COMMAND" translate "$1"
}

PHRASES='in 17 weeks
Wednesday, March 5, 2031
France, Japan, and Brazil'

show "$COMMAND" train demo --output "$RUN"
show "$COMMAND" evaluate "$RUN"
show "$COMMAND" export saved-model "$RUN" "$RUN/serving"
show "$COMMAND" export litert "$RUN" "$RUN/demo.tflite"

printf '\nThe phrases:\n%s\n' "$PHRASES"
translate "$RUN"
translate "$RUN/serving"
translate "$RUN/demo.tflite"
show "$COMMAND" plot attention "$RUN" "Wednesday, March 5, 2031" --output "$RUN/attention.png"

COMMAND=$(quoted "$COMMAND")

cat <<END

Everything is in $RUN:
  model.keras      the trained model             tokenizer.model  its vocabulary
  serving/1/       for TensorFlow Serving        demo.tflite      for LiteRT: phones, browsers
  attention.png    who attended to whom          metrics.json     every result
  config.toml      every setting                 logs/            tensorboard --logdir $(quoted "$RUN/logs")

Next:
  echo 'in 3 hours and 20 minutes' | $COMMAND translate $(quoted "$RUN")
  $COMMAND train demo --output runs/french --set data.target_language=fr
  $COMMAND train CONFIG.toml --output runs/mine     your own corpus; see docs/translation.md
END
