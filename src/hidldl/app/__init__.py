"""``hidldl app``: recovering in a web page.

Starlette, uvicorn and one page written by hand: light to install, and all that a handful of requests needs. Streamlit,
Panel and NiceGUI bring much more, or a session in which a long computation cannot be cancelled.
"""
