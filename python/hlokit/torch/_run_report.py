HOSTS = ("recorded", "torch_xla")
def write(recording, options, title, out):
    for r in recording.reports: print(r, file=out)
    print(recording.nearest, file=out)
