"""Export to a folder for CTranslate2."""
