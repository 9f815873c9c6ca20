"""Morse code, and texts as radio amateurs send them."""

import functools

# ITU-R M.1677-1, and the usual codes of `!` and `&`.
CODES = {
    "A": ".-", "B": "-...", "C": "-.-.", "D": "-..", "E": ".", "F": "..-.", "G": "--.",
    "H": "....", "I": "..", "J": ".---", "K": "-.-", "L": ".-..", "M": "--", "N": "-.",
    "O": "---", "P": ".--.", "Q": "--.-", "R": ".-.", "S": "...", "T": "-", "U": "..-",
    "V": "...-", "W": ".--", "X": "-..-", "Y": "-.--", "Z": "--..",
    "0": "-----", "1": ".----", "2": "..---", "3": "...--", "4": "....-", "5": ".....",
    "6": "-....", "7": "--...", "8": "---..", "9": "----.",
    ".": ".-.-.-", ",": "--..--", "?": "..--..", "'": ".----.", "/": "-..-.", "(": "-.--.",
    ")": "-.--.-", ":": "---...", "=": "-...-", "+": ".-.-.", "-": "-....-", '"': ".-..-.",
    "@": ".--.-.",
}  # fmt: skip
LETTERS, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
MARKS = "".join(sorted(CODES.keys() - set(LETTERS + DIGITS)))


def _listed(text):
    return tuple(text.split())


WORDS = _listed("""
    ABOUT AFTER AGAIN AIR ALL ALSO AND ANTENNA ANY ARE ASK BACK BAND BECAUSE BEFORE BEST BOAT BOOK
    BRIDGE CALL CAN CAR CITY CLEAR CLOUD COLD COME COPY COULD DARK DAY DEAR DID DOWN EACH EARLY
    EAST EVEN EVERY FAR FAST FEW FINE FIRST FIVE FOG FOR FOUND FOUR FREQUENCY FRIEND FROM FULL GALE
    GIVE GOOD GREAT GROUND HALF HAND HAPPY HAVE HEAR HEAVY HELP HERE HIGH HILL HOME HOPE HOT HOUR
    HOUSE ICE JULY JUNE JUST KEEP KEY KNOW LAKE LAST LATE LEFT LESS LETTER LIGHT LITTLE LONG LOUD
    LOW MAKE MANY MARCH MAY MEET METER MILE MONDAY MOON MORE MORNING MORSE MUCH NAME NEAR NEVER NEW
    NEXT NIGHT NOISE NORTH NOT NOW NUMBER OLD ONLY OPEN OTHER OVER PAPER PLEASE PORT POWER QUESTION
    QUICK QUIET RADIO RAIN READ REPORT RIGHT RIVER ROAD SAME SEA SEND SEVEN SHIP SHORT SIGNAL SIX
    SLOW SNOW SOME SOON SOUTH STATION STILL STOP STORM STRONG SUMMER SUN SUNDAY TAKE TEST THANK THAT
    THE THEN THERE THIS THREE TIME TODAY TOWER TRAIN TWO UNDER VERY WAIT WARM WATER WAVE WEATHER
    WEEK WELL WEST WHAT WHEN WHERE WHITE WILL WIND WINTER WIRE WITH WORK WORLD WRITE YEAR YES YOU
    ZERO ZONE
""")
PREFIXES = _listed("""
    K W N AA KD VE G M EI F ON PA DL DJ OE HB9 I EA CT SM LA OH OZ SP OK OM HA YO LZ SV UA UR LY YL
    ES JA BY HL VK ZL ZS PY LU CE XE 9A S5 4X
""")
NAMES = _listed("TOM ANN JIM EVA BOB IDA MAX LEA PETE JOHN MARY HANS YUKI CARL OLGA IVAN ROSA KEN")
TOWNS = _listed("PARIS OSLO ROME BERN LIMA KYOTO PERTH GRAZ DELFT BRNO LYON CORK BERGEN TURKU GENT")


def call_sign(dice) -> str:
    """Draws a call sign, such as DL3ABC: a prefix, a digit and one to three letters."""
    prefix = dice.pick(PREFIXES)
    digit = "" if prefix[-1] in DIGITS else dice.pick(DIGITS)
    return prefix + digit + "".join(dice.pick(LETTERS) for _ in range(1 + dice.below(3)))


def _words(dice):
    words = [dice.pick(WORDS) for _ in range(1 + dice.below(4))]
    return " ".join(words) + dice.pick(("", "", "", ".", "?", ","))


def _group(dice):
    """Draws characters that no dictionary helps to guess."""
    alphabet = dice.pick((LETTERS, LETTERS, DIGITS, LETTERS + DIGITS, LETTERS + DIGITS + MARKS))
    return "".join(dice.pick(alphabet) for _ in range(3 + dice.below(5)))


def _groups(dice):
    return " ".join(_group(dice) for _ in range(1 + dice.below(3)))


def _contact(dice):
    """Draws a phrase of a contact between two stations."""
    form = dice.pick((
        "CQ CQ DE {a} K", "{a} DE {b} K", "{a} DE {b} UR RST {r}", "UR RST {r} = {r}",
        "NAME IS {n} = {n}", "QTH {t} = {t}", "OP {n} QTH {t}", "QRZ? DE {a}", "QSL? {a}",
        "QRM ON {d} KHZ", "73 DE {a}", "TNX {n} 73 + {a}", "WX {w} = TEMP {e}C", "{a}/P",
        "PSE AGN? {a}", "QSY {d} KHZ", "RIG {e}W ANT {w}", "NR {e} AT {h}:{m}Z",
    ))  # fmt: skip
    return form.format(
        a=call_sign(dice), b=call_sign(dice), n=dice.pick(NAMES), t=dice.pick(TOWNS),
        r=f"{3 + dice.below(3)}{1 + dice.below(9)}9", w=dice.pick(WORDS), e=1 + dice.below(99),
        d=1800 + dice.below(28_000), h=f"{dice.below(24):02}", m=f"{dice.below(60):02}",
    )  # fmt: skip


KINDS = _words, _groups, _contact


def draw_text(dice) -> str:
    """Draws a text: words, groups of random characters, or a phrase of a contact.

    Args:
        dice: The `Dice`.
    """
    return dice.pick(KINDS)(dice)


def units(text) -> int:
    """Returns the duration of a text in dots.

    A dash has 3 dots; the gaps in a character, between characters and between words have 1, 3 and
    7. The word PARIS with the gap after it has 50.
    """
    return sum(length for _, length in elements(text))


@functools.lru_cache(maxsize=64)
def elements(text) -> tuple[tuple[bool, int], ...]:
    """Returns pairs of a text's elements: whether the key is down, and for how many dots."""
    result = []
    for number, word in enumerate(text.split(" ")):
        if number:
            result.append((False, 7))
        for place, character in enumerate(word):
            if place:
                result.append((False, 3))
            for index, sign in enumerate(CODES[character]):
                if index:
                    result.append((False, 1))
                result.append((True, 1 if sign == "." else 3))
    return tuple(result)
