"""Child processes and threads: started with a clean environment, ended with all they started; commands in the
background.
"""
