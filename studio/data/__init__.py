"""From files to pixels, with numpy and Pillow. No torch, no Qt.

Start with sprites.py, the data class that training consumes, then importing/importing.py, the pipeline that fills it.
"""
