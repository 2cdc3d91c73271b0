"""Hostile programs of our own writing, by the effect that each has outside the cage. Each defines `attack(argument)`.

`argument` names the victims: a folder, ports on loopback, a process. An attack that fails may raise: what counts is the
effect that the host sees.
"""

from __future__ import annotations

_KEPT = "import os\ndef attack(a):\n    kept = a['folder'] + '/kept.txt'\n    {}\n"
_NEW = "import os\ndef attack(a):\n    new = a['folder'] + '/new'\n    {}\n"
_HIT = "import socket\ndef attack(a):\n    {}\n"
_SECRET = "import os\ndef attack(a):\n    {}\n"
_TOUCH = "touch {a['folder']}/new"

FILES = {
    "open": _NEW.format("open(new, 'w').write('x')"),
    "os.open": _NEW.format("os.close(os.open(new, os.O_CREAT | os.O_WRONLY))"),
    "FileIO": "import io\ndef attack(a):\n    io.FileIO(a['folder'] + '/new', 'w').write(b'x')\n",
    "codecs": "import codecs\ndef attack(a):\n    codecs.open(a['folder'] + '/new', 'w').write('x')\n",
    "pathlib": "import pathlib\ndef attack(a):\n    pathlib.Path(a['folder'], 'new').write_text('x')\n",
    "mkdir": _NEW.format("os.mkdir(new)"),
    "mkfifo": _NEW.format("os.mkfifo(new)"),
    "symlink": _NEW.format("os.symlink('/etc', new)"),
    "link": _KEPT.format("os.link(kept, kept + '2')"),
    "rename": _KEPT.format("os.rename(kept, kept + '2')"),
    "replace": _KEPT.format("os.replace(a['folder'] + '/secret.txt', kept)"),
    "unlink": _KEPT.format("os.unlink(kept)"),
    "rmdir": _KEPT.format("os.rmdir(a['folder'] + '/empty')"),
    "truncate": _KEPT.format("os.truncate(kept, 3)"),
    "chmod": _KEPT.format("os.chmod(kept, 0o777)"),
    "utime": _KEPT.format("os.utime(kept, (9, 9))"),
    "append": _KEPT.format("open(kept, 'ab').write(b'more')"),
    "chdir": _NEW.format("os.chdir(a['folder']); open('new', 'w').close()"),
    "dir_fd": _NEW.format("os.mkdir('new', dir_fd=os.open(a['folder'], os.O_RDONLY))"),
    "cwd of proc": _NEW.format("os.chdir(a['folder']); open('/proc/self/cwd/new', 'w').close()"),
    "mmap of a file": "import mmap\ndef attack(a):\n    file = open(a['folder'] + '/kept.txt', 'r+b')\n"
    "    m = mmap.mmap(file.fileno(), 0)\n    m[0:1] = b'X'\n    m.flush()\n",
    "copy_file_range": "import os\ndef attack(a):\n    s = os.open(a['folder'] + '/kept.txt', os.O_RDONLY)\n"
    "    t = os.open(a['folder'] + '/new', os.O_CREAT | os.O_WRONLY)\n    os.copy_file_range(s, t, 10)\n",
    "socket file": "import socket\ndef attack(a):\n    socket.socket(socket.AF_UNIX).bind(a['folder'] + '/new')\n",
    "sqlite": "import sqlite3\ndef attack(a):\n    sqlite3.connect(a['folder'] + '/new').execute('create table t(x)')\n",
    "tempfile": "import tempfile\ndef attack(a):\n    tempfile.mkstemp(dir=a['folder'])\n",
    "shutil": "import shutil\ndef attack(a):\n    shutil.copy(a['folder'] + '/kept.txt', a['folder'] + '/new')\n",
    "logging": "import logging\ndef attack(a):\n    logging.FileHandler(a['folder'] + '/new')\n",
    "zipfile": "import zipfile\ndef attack(a):\n    zipfile.ZipFile(a['folder'] + '/new', 'w').writestr('x', 'y')\n",
    "libc creat": "import ctypes\ndef attack(a):\n    ctypes.CDLL(None).creat((a['folder'] + '/new').encode(), 0o600)\n",
    "raw system call": "import ctypes\ndef attack(a):\n    c = ctypes.CDLL(None)\n"
    "    for number in (257, 56, 2):\n        c.syscall(number, -100, (a['folder'] + '/new').encode(), 0o102, 0o600)\n",
    "C callback": "import ctypes\ndef attack(a):\n    kind = ctypes.CFUNCTYPE(None)\n"
    "    kind(lambda: open(a['folder'] + '/new', 'w').close())()\n",
    "subclasses": "def attack(a):\n    for c in ().__class__.__base__.__subclasses__():\n"
    "        if c.__name__ == '_wrap_close':\n"
    "            c.__init__.__globals__['open'](a['folder'] + '/new', c.__init__.__globals__['O_CREAT'])\n",
    "frames": "import sys\ndef attack(a):\n    f = sys._getframe()\n    while f.f_back:\n        f = f.f_back\n"
    "    f.f_builtins['open'](a['folder'] + '/new', 'w').close()\n",
    "exec in exec": "def attack(a):\n    exec(\"eval('open')(p, 'w').close()\", {'p': a['folder'] + '/new'})\n",
    "os.system": "import os\ndef attack(a):\n    os.system(f\"" + _TOUCH + '")\n',
    "os.popen": "import os\ndef attack(a):\n    os.popen(f\"" + _TOUCH + '").read()\n',
    "subprocess": "import subprocess\ndef attack(a):\n    subprocess.run(['touch', a['folder'] + '/new'])\n",
    "execv": "import os\ndef attack(a):\n    os.execv('/usr/bin/touch', ['touch', a['folder'] + '/new'])\n",
    "execveat": "import ctypes, os\ndef attack(a):\n    argv = (ctypes.c_char_p * 3)(b'touch', (a['folder'] + '/new').encode())\n"
    "    c = ctypes.CDLL(None)\n"
    "    for number in (322, 281):\n        c.syscall(number, -100, b'/usr/bin/touch', argv, None, 0)\n",
    "posix_spawn": "import os\ndef attack(a):\n"
    "    os.waitpid(os.posix_spawn('/usr/bin/touch', ['touch', a['folder'] + '/new'], {}), 0)\n",
    "pickle": "import pickle\ndef attack(a):\n"
    "    pickle.loads(b\"cos\\nsystem\\n(S'touch \" + a['folder'].encode() + b\"/new'\\ntR.\")\n",
    "thread": "import threading\ndef attack(a):\n"
    "    t = threading.Thread(target=lambda: open(a['folder'] + '/new', 'w').close())\n    t.start()\n    t.join()\n",
    "child": "import os\ndef attack(a):\n    if os.fork() == 0:\n        open(a['folder'] + '/new', 'w').close()\n"
    "        os._exit(0)\n    os.wait()\n",
    "at exit": "import atexit\ndef attack(a):\n    atexit.register(lambda: open(a['folder'] + '/new', 'w').close())\n",
    "finalizer": "class Late:\n    def __del__(self):\n        open(self.path, 'w').close()\n"
    "def attack(a):\n    late = Late()\n    late.path = a['folder'] + '/new'\n",
    "signal handler": "import signal, time\ndef attack(a):\n"
    "    signal.signal(signal.SIGALRM, lambda *_: open(a['folder'] + '/new', 'w').close())\n"
    "    signal.setitimer(signal.ITIMER_REAL, 0.01)\n    time.sleep(0.05)\n",
    "trace function": "import sys\ndef attack(a):\n    sys.settrace(lambda *_: open(a['folder'] + '/new', 'w').close())\n"
    "    (lambda: 0)()\n",
    "audit hook": "import sys\ndef attack(a):\n    done = []\n    def hook(*_):\n"
    "        if not done:\n            done.append(1)\n            open(a['folder'] + '/new', 'w').close()\n"
    "    sys.addaudithook(hook)\n    compile('1', '', 'eval')\n",
    "planted module": "import os, sys\ndef attack(a):\n    open(a['folder'] + '/planted.py', 'w').write('x = 1')\n"
    "    sys.path.insert(0, a['folder'])\n    import planted\n",
    "print to a file": "def attack(a):\n    print('x', file=open(a['folder'] + '/new', 'w'), flush=True)\n",
    "faulthandler": "import faulthandler\ndef attack(a):\n    faulthandler.enable(open(a['folder'] + '/new', 'w'))\n",
    "raised limits": "import os, resource\ndef attack(a):\n    try:\n"
    "        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n    except (OSError, ValueError):\n        pass\n"
    "    open(a['folder'] + '/new', 'w').write('x')\n",
}  # fmt: skip

CONNECTIONS = {
    "tcp": _HIT.format("socket.create_connection(('127.0.0.1', a['port']))"),
    "tcp by hand": _HIT.format("s = socket.socket(); s.setblocking(True); s.connect(('127.0.0.1', a['port']))"),
    "udp": _HIT.format("socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', a['datagrams']))"),
    "abstract socket": _HIT.format("socket.socket(socket.AF_UNIX).connect('\\0' + a['local'])"),
    "urllib": "import urllib.request\ndef attack(a):\n"
    "    urllib.request.urlopen(f\"http://127.0.0.1:{a['port']}\", timeout=0.1)\n",
    "http.client": "import http.client\ndef attack(a):\n    http.client.HTTPConnection('127.0.0.1', a['port']).connect()\n",
    "asyncio": "import asyncio\ndef attack(a):\n    asyncio.run(asyncio.open_connection('127.0.0.1', a['port']))\n",
    "libc": "import ctypes, struct\ndef attack(a):\n    c = ctypes.CDLL(None)\n"
    "    s = c.socket(2, 1, 0)\n"
    "    c.connect(s, struct.pack('<H', 2) + struct.pack('>H', a['port']) + bytes([127, 0, 0, 1]) + bytes(8), 16)\n",
    "shell": "import subprocess\ndef attack(a):\n"
    "    subprocess.run(['bash', '-c', f\"echo x > /dev/tcp/127.0.0.1/{a['port']}\"])\n",
    "reloaded socket": "import importlib, socket\ndef attack(a):\n    s = importlib.reload(socket)\n"
    "    s.create_connection(('127.0.0.1', a['port']))\n",
    "log handler": "import logging.handlers\ndef attack(a):\n"
    "    logging.handlers.SocketHandler('127.0.0.1', a['port']).createSocket()\n",
}

SECRETS = {
    "environ": _SECRET.format("return dict(os.environ)"),
    "getenv of libc": "import ctypes\ndef attack(a):\n    c = ctypes.CDLL(None)\n    c.getenv.restype = ctypes.c_char_p\n"
    "    return str(c.getenv(b'CANARY'))\n",
    "environ of libc": "import ctypes\ndef attack(a):\n"
    "    e = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), 'environ')\n"
    "    return [str(e[i]) for i in range(3) if e and e[i]]\n",
    "environ of proc": _SECRET.format("return open('/proc/self/environ').read()"),
    "environ of others": _SECRET.format("return open('/proc/%d/environ' % a['pid']).read() + open('/proc/self/environ').read()"),
    "file": _SECRET.format("return open(a['folder'] + '/secret.txt').read()"),
    "file by descriptor": _SECRET.format("return os.read(os.open(a['folder'] + '/secret.txt', 0), 99).decode()"),
    "listdir": _SECRET.format("return os.listdir(a['folder'])"),
    "scandir": _SECRET.format("return [e.name for e in os.scandir(a['folder'])]"),
    "glob": "import glob\ndef attack(a):\n    return glob.glob(a['folder'] + '/*')\n",
    "readlink": _SECRET.format("return os.readlink(a['folder'] + '/pointer')"),
    "linecache": "import linecache\ndef attack(a):\n    return linecache.getlines(a['folder'] + '/secret.txt')\n",
    "inherited descriptors": "import os\ndef attack(a):\n    found = []\n    for fd in range(4, 200):\n        try:\n"
    "            found.append(os.pread(fd, 99, 0).decode())\n        except (OSError, ValueError):\n            pass\n"
    "        try:\n            os.lseek(fd, 0, 0)\n            found.append(os.read(fd, 99).decode())\n"
    "        except (OSError, ValueError):\n            pass\n    return found\n",
    "descriptors of proc": _SECRET.format("return open('/proc/self/fd/%d' % os.open(a['folder'] + '/secret.txt', 0)).read()"),
    "host name": _SECRET.format("return os.uname().nodename"),
    "host name of libc": "import ctypes\ndef attack(a):\n    b = ctypes.create_string_buffer(99)\n"
    "    ctypes.CDLL(None).gethostname(b, 99)\n    return b.value.decode()\n",
    "mapped file": "import mmap\ndef attack(a):\n    f = open(a['folder'] + '/secret.txt', 'rb')\n"
    "    return mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:].decode()\n",
    "working folder": _SECRET.format("return os.listdir('.') + [os.getcwd()]"),
}  # fmt: skip

SIGNALS = {
    "kill": "import os, signal\ndef attack(a):\n    os.kill(a['pid'], signal.SIGUSR1)\n",
    "killpg": "import os, signal\ndef attack(a):\n    os.killpg(a['pid'], signal.SIGUSR1)\n",
    "pidfd": "import os, signal\ndef attack(a):\n    signal.pidfd_send_signal(os.pidfd_open(a['pid']), signal.SIGUSR2)\n",
    "libc kill": "import ctypes\ndef attack(a):\n    ctypes.CDLL(None).kill(a['pid'], 10)\n",
    "sigqueue": "import ctypes\ndef attack(a):\n    ctypes.CDLL(None).sigqueue(a['pid'], 10, None)\n",
    "tgkill": "import ctypes\ndef attack(a):\n    ctypes.CDLL(None).tgkill(a['pid'], a['pid'], 10)\n",
    "shell": "import os\ndef attack(a):\n    os.system(f\"kill -USR1 {a['pid']}\")\n",
    "schedule": "import os\ndef attack(a):\n    os.sched_setscheduler(a['pid'], os.SCHED_BATCH, os.sched_param(0))\n",
    "limits": "import resource\ndef attack(a):\n    resource.prlimit(a['pid'], resource.RLIMIT_NOFILE, (60, 90))\n",
    "affinity": "import os\ndef attack(a):\n    os.sched_setaffinity(a['pid'], [max(os.sched_getaffinity(0))])\n",
}

_LINGER = "import os, time\ndef attack(a):\n    {}\n"
PROCESSES = {
    "fork": _LINGER.format("os.fork() or time.sleep(20)"),
    "orphan": _LINGER.format("os.fork() or (os.setsid(), os.fork() or time.sleep(20), os._exit(0))"),
    "ten forks": _LINGER.format("any(os.fork() == 0 and (time.sleep(20) or 1) for _ in range(10))"),
    "fork of libc": "import ctypes, time\ndef attack(a):\n    ctypes.CDLL(None).fork() or time.sleep(20)\n",
    "subprocess": "import subprocess\ndef attack(a):\n    subprocess.Popen(['sleep', '20'])\n",
    "posix_spawn": "import os\ndef attack(a):\n    os.posix_spawn('/usr/bin/sleep', ['sleep', '20'], {})\n",
    "shell": "import os\ndef attack(a):\n    os.system('sleep 20 &')\n",
    "pty": "import os, time\ndef attack(a):\n    os.forkpty()[0] or time.sleep(20)\n",
    "multiprocessing": "import multiprocessing, os, time\ndef attack(a):\n"
    "    multiprocessing.get_context('fork').Process(target=time.sleep, args=(20,)).start()\n    os._exit(0)\n",
}

MEMORY = {
    "bytearray": "def attack(a):\n    b = bytearray(400 << 20)\n    b[::4096] = b'x' * len(b[::4096])\n    return len(b)\n",
    "list": "def attack(a):\n    return len([0] * (50 << 20))\n",
    "text": "def attack(a):\n    return len('x' * (400 << 20))\n",
    "anonymous mapping": "import mmap\ndef attack(a):\n    m = mmap.mmap(-1, 400 << 20)\n"
    "    for i in range(0, len(m), 4096):\n        m[i] = 1\n",
    "malloc": "import ctypes\ndef attack(a):\n    c = ctypes.CDLL(None)\n    c.malloc.restype = ctypes.c_void_p\n"
    "    p = c.malloc(ctypes.c_size_t(400 << 20))\n    ctypes.memset(p, 1, 400 << 20)\n",
}

_ENDLESS = {
    "regular expression": "import re\ndef attack(a):\n    re.match('(a+)+$', 'a' * 40 + 'b')\n",
    "power": "def attack(a):\n    return 9 ** 9 ** 9\n",
    "spin that swallows everything": "def attack(a):\n    while True:\n        try:\n"
    "            while True:\n                pass\n"
    "        except BaseException:\n            pass\n",
    "spin at import, deaf": "import signal\nfor number in range(1, 65):\n    try:\n"
    "        signal.signal(number, signal.SIG_IGN)\n"
    "    except (OSError, ValueError):\n        pass\nwhile True:\n    pass\n",
    "raised limit": "import resource\nfor most in (99, -1):\n    try:\n"
    "        resource.setrlimit(resource.RLIMIT_CPU, (most, most))\n"
    "    except (OSError, ValueError):\n        pass\ndef attack(a):\n    while True:\n        pass\n",
}

LASTING = {
    **_ENDLESS,
    "sleep": "import time\ndef attack(a):\n    time.sleep(99)\n",
    "lock": "import threading\ndef attack(a):\n    threading.Lock().acquire() and threading.Event().wait()\n",
    "descriptor": "import os\ndef attack(a):\n    while True:\n"
    "        os.close(3) if a.pop('port', 0) else __import__('time').sleep(1)\n",
}

FLOODS = {
    "answer": "import os\ndef attack(a):\n    for _ in range(5000):\n        os.write(3, b'x' * 1000)\n",
    "large value": "def attack(a):\n    return 'x' * 10_000_000\n",
    "many values": "def attack(a):\n    return list(range(500_000))\n",
    "flood at import": "import os\nfor _ in range(500):\n    os.write(3, b'[' * 1000)\ndef attack(a):\n    return 1\n",
}

_IPC = "import ctypes\ndef attack(a):\n    c = ctypes.CDLL(None)\n    key = ctypes.c_int(a['key'])\n    {}\n"
SHARED = {  # what outlives the process that made it, and what others find by its key or name
    "shared memory": _IPC.format("c.shmget(key, ctypes.c_size_t(4096), 0o1666)"),
    "message queue": _IPC.format("c.msgget(key, 0o1666)"),
    "semaphore": _IPC.format("c.semget(key, 1, 0o1666)"),
    "file in memory": _IPC.format("open('/dev/shm/' + a['local'], 'w').write('x')"),
    "shm_open": _IPC.format("c.shm_open(b'/' + a['local'].encode(), 0o102, 0o600)"),
}

BY_EFFECT = {
    "file": FILES, "connection": CONNECTIONS, "secret": SECRETS, "signal": SIGNALS, "process": PROCESSES, "memory": MEMORY,
    "lasting": LASTING, "flood": FLOODS, "shared": SHARED,
}  # fmt: skip
