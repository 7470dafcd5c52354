"""Import files as pixels with numpy and Pillow, and check and fix them. No torch, no Qt.

Start with sprites.py, the data class that training consumes, then importing/importing.py, the pipeline that fills it.
"""
