"""One picture file -> RGBA pixels: headers, decoding, animations, and the canvas that they are laid on.

In come the bytes of one file; everything that is wrong with them is said as a DamagedError or a remark.
"""
