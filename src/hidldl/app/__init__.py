"""``hidldl app``: recovering in a web page. Four rooms: server (requests), jobs (work and files), overview, sample.

Starlette, uvicorn and one page written by hand: a few megabytes to install, and all that a handful of requests needs.
Streamlit, Panel and NiceGUI bring a hundred or more, or a session in which a long computation cannot be cancelled.
"""
