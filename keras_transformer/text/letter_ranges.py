"""Classes of letters, numbers and marks in the patterns of byte-level BPE; see `unicode_ranges`."""

from keras_transformer.text.unicode_ranges import of_categories, ranges

# Letters and numbers, `\p{L}` and `\p{N}` in patterns.
LETTERS = of_categories(
    "Lu Ll Lt Lm Lo",
    "1c89-1c8a a7cb-a7cd a7da-a7dc 105c0-105f3 10d4a-10d65 10d6f-10d85 10ec2-10ec4 1123f-11240 "
    "11380-11389 1138b 1138e 11390-113b5 113b7 113d1 113d3 11bc0-11be0 11f02 11f04-11f10 "
    "11f12-11f33 1342f 13441-13446 13460-143fa 16100-1611d 16d40-16d6c 18cff 1b132 1b155 "
    "1df25-1df2a 1e030-1e06d 1e4d0-1e4eb 1e5d0-1e5ed 1e5f0 2b739 2ebf0-2ee5d 31350-323af",
)
NUMBERS = of_categories(
    "Nd Nl No",
    "10d40-10d49 116d0-116e3 11bf0-11bf9 11f50-11f59 16130-16139 16d70-16d79 1ccf0-1ccf9 "
    "1d2c0-1d2d3 1e4f0-1e4f9 1e5f1-1e5fa",
)
# Digits that a splitting at digits knows, and the patterns do not.
NEW_DIGITS = ranges("11de0-11de9 16ff4-16ff6")
# Letters by their case, `\p{Lu}` and `\p{Lt}`, and `\p{Ll}`; and marks, `\p{M}`.
UPPERCASE_LETTERS = of_categories("Lu Lt", "1c89 a7cb-a7cc a7da a7dc 10d50-10d65")
LOWERCASE_LETTERS = of_categories("Ll", "1c8a a7cd a7db 10d70-10d85 1df25-1df2a")
COMBINING = of_categories(
    "Mn Mc Me",
    "897 cf3 ece 10d69-10d6d 10efc-10eff 11241 113b8-113c0 113c2 113c5 113c7-113ca 113cc-113d0 "
    "113d2 113e1-113e2 11f00-11f01 11f03 11f34-11f3a 11f3e-11f42 11f5a 13440 13447-13455 "
    "1611e-1612f 1e08f 1e4ec-1e4ef 1e5ee-1e5ef",
)
