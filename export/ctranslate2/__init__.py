"""A folder for CTranslate2."""
