"""Export to a folder for Marian and for the fork of Marian that browsers use."""
