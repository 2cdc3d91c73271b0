"""Command files: their models (`models`), bytes read as plain values (`file_formats`; `json_faults` says what to change),
and values made commands (`parsing`).

Pure: no file is touched here.
"""
