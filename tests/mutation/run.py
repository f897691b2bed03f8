#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
How many bugs do the tests notice? Draws lines of C at random, by the folders' sizes, plants one bug (mutate.py) at each, in a copy
of the tree, and runs what is likeliest to fail: unit tests that link the changed code (named like the file, then those that include
its header, and one for want of memory), the first of these with sanitizers, system tests that the file "near" names, other unit tests.

  run.py [--seed SEED] [--count N] [--shards N] [--only FOLDER]  goes on where an earlier run with this seed stopped; ends with a table
  run.py --list-survivors                       what was found so far, and what ran in vain
  run.py --again                                the survivors once more, over the working tree: do new tests notice them?
  run.py --one ID...                            single ones over the working tree, with what the tests said

The seed is the last commit that touched tests/ unless it is given; so who writes tests draws anew. A mutant that does not compile, or
to the same code, is drawn again and counted. A test counts when it passes on the unchanged tree and fails twice with the bug; no end
counts when the unchanged one ends within a quarter of the time. All tests of a mutant take at most a minute. The file "equivalent" explains
survivors that no test can notice. Everything lies below build/mutation: shard-*, the copies; SEED, plan and results, a JSON line each.
Tests run where only their copy can be written (a bug may remove files), with a /tmp of their own, unit tests also among processes of their own.
Needs root, as the system tests do. `make mutation` runs this with MUTATION='OPTION...'.
"""
import argparse, difflib, fcntl, hashlib, io, json, os, pathlib, random, re, resource, shutil, signal, struct, subprocess, sys, tarfile, time

sys.dont_write_bytecode = True
import mutate

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
ROOT = TOP / 'build' / 'mutation'
FOLDERS = ('agent', 'backend', 'proto', 'symbols', 'sinks', 'enrich', 'base', 'cmd', 'bpf')
LIMIT_S = 60
NEAREST = 12 # so many unit tests of the file's layer are built and run first, and the first of them with sanitizers
MAX_DRAWS = 40


def git(*args, text=True):
	return subprocess.run(('git', '-C', str(TOP)) + args, check=True, capture_output=True, text=text).stdout


# --- mutants ---

class Mutant:
	def __init__(self, path, number, old, operator, new):
		self.path, self.number, self.old, self.operator, self.new = path, number, old, operator, new

	@property
	def folder(self):
		return self.path.split('/')[0]

	@property
	def id(self):
		"""The same as long as the line and the change are, wherever in its folder the line moves."""
		return hashlib.sha256('\0'.join((self.folder, self.old.strip(), self.new.strip())).encode()).hexdigest()[:10]

	def __str__(self):
		return f'{self.id} {self.path}:{self.number} {self.operator}\n      - {self.old.strip()}\n      + {self.new.strip()}'


def is_built(path):
	"""Not another CPU's."""
	other = {'x86_64': 'arm64', 'aarch64': 'x86_64'}.get(os.uname().machine)
	return path.endswith(('.c', '.h')) and not re.search(rf'_{other}\.[ch]$', path)


def candidates(files, seed):
	"""folder -> [Mutant] in the order in which they are drawn. @files: path -> text"""
	drawn = {folder: [] for folder in FOLDERS}
	for path, text in sorted(files.items()):
		lines = text.split('\n')
		for index, code, begins in mutate.mutable_lines(text):
			choices = mutate.bugs(lines[index], code, begins)
			if not choices:
				continue
			rng = random.Random(f'{seed} {path} {index}')
			operator = rng.choice(sorted({c[0] for c in choices}))
			new = rng.choice([c for c in choices if c[0] == operator])[1]
			drawn[path.split('/')[0]].append(Mutant(path, index + 1, lines[index], operator, new))
	for folder, mutants in drawn.items():
		random.Random(f'{seed} {folder}').shuffle(mutants)
	return drawn


def slots(drawn, sizes, count, seed):
	"""[(folder, number)]: @count of them by the folders' @sizes, mixed. What a slot draws next does not depend on other slots."""
	total = sum(sizes.values())
	share = {f: count * sizes[f] / total for f in FOLDERS}
	quota = {f: int(share[f]) for f in FOLDERS}
	for f in sorted(FOLDERS, key=lambda f: quota[f] - share[f])[:count - sum(quota.values())]:
		quota[f] += 1
	found = [(f, i) for f in FOLDERS for i in range(quota[f])]
	random.Random(seed).shuffle(found)
	return found, {(f, i): drawn[f][i::quota[f]] for f, i in found}


# --- a copy of the tree ---

class Elf:
	"""What of an object file matters: not where lines and columns are."""

	def __init__(self, path):
		data = pathlib.Path(path).read_bytes()
		at, size, count, names = (struct.unpack_from(f, data, o)[0] for f, o in (('<Q', 40), ('<H', 58), ('<H', 60), ('<H', 62)))
		sections = [struct.unpack_from('<IIQQQQIIQQ', data, at + i * size) for i in range(count)]
		label = lambda table, o: data[sections[table][4] + o:data.index(b'\0', sections[table][4] + o)].decode()
		self.code, self.functions = hashlib.sha256(), set()
		for name, kind, flags, _, offset, length, link, target, _, entry in sections:
			name = label(names, name)
			if kind == 2: # symbols
				for i in range(0, length, entry):
					word, info, _, section, _, _ = struct.unpack_from('<IBBHQQ', data, offset + i)
					if info in (0x11, 0x12) and section: # global functions and tables that are defined here
						self.functions.add(label(link, word))
			about = label(names, sections[target][0]) if kind in (4, 9) else name
			if kind not in (2, 3, 8) and not re.match(r'\.(debug|BTF|llvm|note|comment)', about):
				self.code.update(name.encode() + data[offset:offset + length])
		self.code = self.code.hexdigest()


class Shard:
	def __init__(self, name):
		self.top = ROOT / f'shard-{name}'
		self.top.mkdir(parents=True, exist_ok=True)
		self.lock = open(ROOT / f'shard-{name}.lock', 'w')
		fcntl.flock(self.lock, fcntl.LOCK_EX)
		self.known_path = ROOT / f'shard-{name}.tests'
		self.known = json.loads(self.known_path.read_text()) if self.known_path.exists() else {}

	def sync(self, commit):
		"""The copy is as the commit, or the working tree where it is None; files that are right stay as old as they are."""
		if commit:
			tar = tarfile.open(fileobj=io.BytesIO(git('archive', commit, text=False)))
			files = {m.name: (tar.extractfile(m).read(), m.mode) for m in tar.getmembers() if m.isfile()}
		else:
			names = git('ls-files', '-z', '--cached', '--others', '--exclude-standard').split('\0')
			files = {n: ((TOP / n).read_bytes(), (TOP / n).stat().st_mode) for n in names if n and (TOP / n).is_file()}
		self.files = files
		for path in [p for p in self.top.rglob('*') if p.is_file() and p.relative_to(self.top).parts[0] not in ('build', 'build-san')]:
			if str(path.relative_to(self.top)) not in files:
				path.unlink()
		for name, (data, mode) in files.items():
			path = self.top / name
			if not path.is_file() or path.read_bytes() != data:
				path.parent.mkdir(parents=True, exist_ok=True)
				path.write_bytes(data)
			path.chmod(0o755 if mode & 0o100 else 0o644)

	def make(self, *targets, san=False):
		command = ['make', '-s', '-j2', *(('SAN=1', 'CC=clang', 'BUILD=build-san') if san else ()), *map(str, targets)]
		done = subprocess.run(command, cwd=self.top, capture_output=True, text=True, errors='replace', env=clean_environment())
		self.said = done.stdout[-3000:] + done.stderr[-3000:]
		return done.returncode == 0

	def prepare(self, commit):
		self.sync(commit)
		if not self.make('all', 'unit-bins', 'judge-bin') or not self.programs('truth') or not self.programs('turns'):
			sys.exit(f'the unchanged tree does not build in {self.top}:\n{self.said}')
		result, _, said = self.run(Test('system', 'completion'), LIMIT_S)
		if result == 'failed': # then all would, and be left out as failing without a bug
			sys.exit(f'system tests fail on the unchanged tree, where they may write to their copy alone:\n{said}')
		self.needs = {} # file -> what is built of it
		for path in self.top.glob('build/**/*.d'):
			for rule in re.split(r'\n(?=\S)', path.read_text().replace('\\\n', ' ')):
				target, _, needed = rule.partition(': ')
				for name in needed.split():
					self.needs.setdefault(name, []).append(target)
		sources = sorted(n for n in self.files if re.match(r'tests/unit/.*/test_\w+\.c$', n)) # a binary may be an earlier tree's
		binaries = {n[len('tests/unit/'):-2]: self.top / 'build' / n[len('tests/'):-2] for n in sources}
		self.tests = {name: path for name, path in binaries.items() if path.is_file()}
		self.elves = {str(p.relative_to(self.top)): Elf(p) for p in [*self.tests.values(), *self.top.glob('build/**/*.o')] if 'chdb' not in p.parts}
		self.unchanged = {name: self.identity(Test('unit', name)) for name in self.tests}

	def programs(self, name):
		done = subprocess.run((f'tests/{name}/build.sh', f'build/{name}'), cwd=self.top, capture_output=True, text=True, env=clean_environment())
		self.said = done.stdout + done.stderr
		return done.returncode == 0

	# --- which tests ---

	def unit_tests(self, path, objects):
		"""(the nearest, the others) of the unit tests that link what is built of the file, likeliest first."""
		objects = [o for object in objects for o in (self.needs[object.replace('.bpf.o', '.skel.h')] if object.endswith('.bpf.o') else [object])]
		functions = set().union(*(self.elves[o].functions for o in objects if o in self.elves))
		base = re.sub(r'\.\w+$', '', os.path.basename(path))
		header = re.sub(r'\.\w+$', '.h', path)
		words = base.replace('.bpf', '').split('_')
		ranked = []
		for name in self.tests:
			compiled = f'build/tests/unit/{name}.o' in self.needs.get(path, [])
			if not compiled and not functions & self.elves[f'build/unit/{name}'].functions:
				continue
			unit = re.sub(r'^test_', '', os.path.basename(name)).split('_')
			same = 0
			while same < min(len(words), len(unit)) and words[same] == unit[same]:
				same += 1
			source = self.files.get(f'tests/unit/{name}.c', (b'', 0))[0].decode()
			includes = f'"{header}"' in source or compiled
			folders, of_test = path.split('/')[:-1], name.split('/')[:-1]
			shared = len(os.path.commonprefix([folders, of_test]))
			ranked.append((-10 * (unit == words) - 3 * includes - 4 * same - 2 * (folders == of_test) - 2 * (folders[-1] in unit) - shared, name))
		ranked.sort()
		nearest = [name for score, name in ranked if score < 0][:NEAREST]
		nearest += [name for _, name in ranked if name.endswith('/test_no_memory') and name not in nearest][:1]
		return [Test('unit', name) for name in nearest], [Test('unit', name) for _, name in ranked if name not in nearest]

	def objects(self, path):
		"""What is built of a source file."""
		return [o for o in self.needs.get(path, []) if re.match(rf'build/({"|".join(FOLDERS)})/.*\.o$', o)]

	def plan(self, path, objects, kinds):
		"""[Test] in the order in which they are run"""
		nearest, others = self.unit_tests(path, objects)
		tests = nearest + [Test('san', t.name) for t in nearest[:NEAREST // 3]] + self.system_tests(path) + others
		return [t for t in tests if t.kind in kinds]

	def system_tests(self, path):
		for line in (HERE / 'near').read_text().split('\n'):
			pattern, _, tests = line.partition(' ')
			if pattern and not pattern.startswith('#') and re.match(pattern, path):
				return [Test('system', t.strip()) for t in tests.split(',') if t.strip()]
		return []

	# --- running them ---

	def identity(self, test):
		"""What a test's result depends on."""
		whole = hashlib.sha256()
		for path in test.files(self):
			whole.update(path.read_bytes() if path.exists() else b'')
		return whole.hexdigest()

	def baseline(self, test):
		"""(does it pass unchanged, seconds); the sources are unchanged. What is known is found again by what the test depends on."""
		if not self.make(test.target(), san=test.kind == 'san'):
			return False, 0
		identity = self.identity(test)
		if self.known.get(str(test), [''])[0] != identity:
			result, seconds, _ = self.run(test, 3 * LIMIT_S)
			for _ in range(2 if test.kind == 'system' else 1):
				if result == 'failed': # the machine may have been busy
					result, seconds, _ = self.run(test, 3 * LIMIT_S)
			self.known[str(test)] = [identity, result, seconds]
			self.known_path.write_text(json.dumps(self.known, indent=0))
		_, result, seconds = self.known[str(test)]
		return result == 'passed', seconds

	def run(self, test, limit_s):
		"""(passed | skipped | failed | no end, seconds, what it said)"""
		work = pathlib.Path(subprocess.run(['mktemp', '-d', '/tmp/hearth-mutation-XXXXXX'], capture_output=True, text=True).stdout.strip())
		work.chmod(0o755)
		mark = f'HEARTH_MUTATION={work.name}'
		env = dict(clean_environment(), CMOCKA_MESSAGE_OUTPUT='STDOUT', HEARTH=f'{self.top}/build/hearth', TRUTH=f'{self.top}/build/truth', TOP=str(self.top),
			   HEARTH_CONFIG='/dev/null', HEARTH_REFUSED_CALLS='kill', HEARTH_SYMBOL_CACHE=f'{work}/symbols', STATE_DIRECTORY=f'{work}/state', WORK=str(work), SHARD=str(self.top),
			   ASAN_OPTIONS='hard_rss_limit_mb=3000', HEARTH_MUTATION=work.name)
		begin = time.monotonic()
		with open(work / 'said', 'w+b') as said:
			process = subprocess.Popen(test.command(self), env=env, cwd=test.cwd(self, work), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
						   start_new_session=True, preexec_fn=lambda: limits(test))
			try:
				status = process.wait(limit_s)
				result = {0: 'passed', 77: 'skipped'}.get(status, 'failed')
			except subprocess.TimeoutExpired:
				os.killpg(process.pid, signal.SIGTERM)
				result = 'no end'
				try:
					process.wait(2)
				except subprocess.TimeoutExpired:
					os.killpg(process.pid, signal.SIGKILL)
					process.wait()
			end_marked(mark.encode())
			said.seek(0)
			text = said.read().decode(errors='replace')
		shutil.rmtree(work, ignore_errors=True)
		if test.kind != 'system' and result == 'passed' and '[  PASSED  ]' not in text:
			result = 'failed' # its end was skipped
		return result, round(time.monotonic() - begin, 2), text


def clean_environment():
	return {k: v for k, v in os.environ.items() if not k.startswith(('SUDO_', 'HEARTH', 'MAKE', 'MFLAGS'))}


def limits(test):
	"""Endless loops may ask for memory or write."""
	if test.kind != 'san': # whose shadow counts
		resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
	resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
	resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 30, resource.RLIM_INFINITY)) # tests have files of their own size


def end_marked(mark):
	"""Ends what a test left running: every process with the mark in its environment."""
	for entry in os.listdir('/proc'):
		try:
			if entry.isdigit() and mark in pathlib.Path('/proc', entry, 'environ').read_bytes().split(b'\0'):
				os.kill(int(entry), signal.SIGKILL)
		except OSError:
			pass


class Test:
	def __init__(self, kind, name):
		self.kind, self.name = kind, name

	def __str__(self):
		return f'{self.kind}:{self.name}'

	def target(self):
		return {'unit': f'build/unit/{self.name}', 'san': f'build-san/unit/{self.name}', 'system': 'all'}[self.kind]

	def files(self, shard):
		if self.kind != 'system':
			return [shard.top / self.target()]
		return [shard.top / 'build/hearth', shard.top / f'tests/system/{self.name.split()[0]}.sh']

	def command(self, shard):
		sandbox = ['unshare', '--mount', *(() if self.kind == 'system' else ('--pid', '--fork', '--kill-child', '--mount-proc')),
			   'bash', str(HERE / 'sandbox.sh')]
		if self.kind == 'system':
			name, *args = self.name.split()
			return [*sandbox, f'{shard.top}/tests/system/{name}.sh', *args]
		return [*sandbox, str(shard.top / self.target())]

	def cwd(self, shard, work):
		if self.kind != 'system':
			return shard.top
		(work / 'run').mkdir()
		return work / 'run'


# --- one mutant ---

def try_mutant(shard, mutant, kinds, verbose=False):
	"""The copy's files are unchanged, before and after. The result, as the dictionary that is kept."""
	begin = time.monotonic()
	result = {'id': mutant.id, 'file': mutant.path, 'line': mutant.number, 'operator': mutant.operator, 'old': mutant.old, 'new': mutant.new,
		  'ran': [], 'vain': [], 'by': None, 'state': 'not built'}
	objects = shard.objects(mutant.path)
	missing = [o for o in objects if o not in shard.elves] # make removes what it made on the way
	if missing and shard.make(*missing):
		shard.elves.update({o: Elf(shard.top / o) for o in missing})
	if objects and all(o in shard.elves for o in objects):
		path = shard.top / mutant.path
		text = path.read_text()
		lines = text.split('\n')
		lines[mutant.number - 1] = mutant.new
		plant, restore = (lambda: path.write_text('\n'.join(lines))), (lambda: path.write_text(text))
		try:
			plant()
			if not shard.make(*objects):
				result['state'] = 'no compile'
			elif all(Elf(shard.top / o).code == shard.elves[o].code for o in objects):
				result['state'] = 'same code'
			else:
				result['state'] = 'survived'
				run_tests(shard, shard.plan(mutant.path, objects, kinds), result, plant, restore, verbose)
		finally:
			restore()
	return dict(result, seconds=round(time.monotonic() - begin, 1))


def run_tests(shard, tests, result, plant, restore, verbose):
	"""The bug is planted. @result says more."""
	left_s = LIMIT_S
	built, broken = set(), set()
	for i, test in enumerate(tests):
		known_s = shard.known.get(str(test), [0, 0, 0])[2]
		if left_s < known_s:
			continue
		if test.target() not in built:
			targets = [t.target() for t in tests[i:i + NEAREST] if t.kind == test.kind]
			built.update(targets)
			if not shard.make('-k', *targets, san=test.kind == 'san'):
				broken.update(t for t in targets if not shard.make(t, san=test.kind == 'san'))
		if test.target() in broken:
			result['vain'].append(str(test))
			continue
		if test.kind == 'unit' and shard.identity(test) == shard.unchanged[test.name]:
			continue # nothing of it was linked
		limit_s = min(4 * known_s + 5, 2 * LIMIT_S) if known_s else LIMIT_S
		outcome, took, said = shard.run(test, limit_s)
		left_s -= took
		if outcome in ('failed', 'no end'):
			if test.kind == 'unit' and shard.known.get(str(test), [''])[0] == shard.unchanged[test.name]:
				passes, seconds = shard.known[str(test)][1] == 'passed', known_s
			else:
				restore()
				passes, seconds = shard.baseline(test)
				plant()
				built.clear()
			if not passes:
				result['vain'].append(str(test))
				continue
			if outcome == 'failed':
				shard.make(test.target(), san=test.kind == 'san')
				outcome, _, said = shard.run(test, max(limit_s, 4 * seconds))
			elif 4 * seconds > limit_s:
				outcome = 'passed' # it was too slow, not endless
		result['ran'].append(str(test))
		if outcome in ('failed', 'no end'):
			result.update(state='noticed', by=str(test), how=outcome)
			if verbose:
				print('\n'.join('        ' + l for l in said.split('\n') if re.search('rror|FAIL|fail|LINE|SUMMARY', l))[:3000])
			return


# --- runs ---

def texts_at(commit):
	names = [n for n in git('ls-tree', '-r', '--name-only', commit, *FOLDERS).split('\n') if is_built(n)]
	tar = tarfile.open(fileobj=io.BytesIO(git('archive', commit, *FOLDERS, text=False)))
	return {n: tar.extractfile(n).read().decode() for n in names}


class Run:
	def __init__(self, seed, count):
		self.seed, self.count = seed, count
		self.folder = ROOT / seed[:16]
		self.folder.mkdir(parents=True, exist_ok=True)
		head = self.folder / 'commit'
		if not head.exists():
			head.write_text(git('rev-parse', 'HEAD'))
		self.commit = head.read_text().strip()

	def results(self):
		path = self.folder / 'results'
		kept = [json.loads(l) for l in path.read_text().split('\n') if l] if path.exists() else []
		return [dict(r, id=mutant_of(r).id) for r in kept]

	def keep(self, result):
		with open(self.folder / 'results', 'a') as file:
			file.write(json.dumps(result) + '\n')

	def work(self, number, shards, only, kinds):
		files = texts_at(self.commit)
		drawn = candidates(files, self.seed)
		sizes = {f: sum(t.count('\n') for p, t in files.items() if p.split('/')[0] == f) for f in FOLDERS}
		order, queues = slots(drawn, sizes, self.count, self.seed)
		done = {tuple(r['slot']) for r in self.results() if r['state'] in ('noticed', 'survived')}
		tried = {}
		for r in self.results():
			tried[tuple(r['slot'])] = tried.get(tuple(r['slot']), 0) + 1
		shard = Shard(number)
		shard.prepare(self.commit)
		for slot in order[number::shards]:
			if slot in done or only and slot[0] != only:
				continue
			for mutant in queues[slot][tried.get(slot, 0):MAX_DRAWS]:
				result = dict(try_mutant(shard, mutant, kinds), slot=slot)
				self.keep(result)
				if result['state'] in ('noticed', 'survived'):
					at = len([r for r in self.results() if r['state'] in ('noticed', 'survived')])
					print(f'{at}/{self.count} {result["state"]} by {result["by"]} {result["seconds"]} s: {mutant}', flush=True)
					break


def explained():
	"""result -> why no test can notice it, or None. Of lines that stand in several files, "return err;", the id is one: a reason may begin
	with the file that it is true of."""
	lines = (HERE / 'equivalent').read_text().split('\n')
	known = [l.split(' ', 1) for l in lines if l and not l.startswith('#')]

	def why(r):
		for id, reason in known:
			file = re.match(r'(\w+\.(?:bpf\.)?[ch]): ', reason)
			if id == r['id'] and (not file or file.group(1) == os.path.basename(r['file'])):
				return reason
		return None
	return why


def table(results):
	why = explained()
	whole = [r for r in results if r['state'] in ('noticed', 'survived')]
	counted = [r for r in whole if r['state'] == 'noticed' or not why(r)]
	print(f'{"folder":10} {"n":>4} {"unit":>5} {"sanitized":>9} {"system":>6} {"survived":>8} {"noticed":>8}')
	for folder in (*FOLDERS, 'all'):
		of = [r for r in counted if folder in (r['file'].split('/')[0], 'all')]
		by = {k: sum(1 for r in of if (r['by'] or '').startswith(k + ':')) for k in ('unit', 'san', 'system')}
		alive = sum(r['state'] == 'survived' for r in of)
		if of:
			print(f'{folder:10} {len(of):4} {by["unit"]:5} {by["san"]:9} {by["system"]:6} {alive:8} {100 * (len(of) - alive) / len(of):6.0f} %')
	again = {s: sum(r['state'] == s for r in results) for s in ('no compile', 'same code', 'not built')}
	print('drawn again: ' + ', '.join(f'{n} {s}' for s, n in again.items()), end='')
	print(f'; {sum(r.get("seconds", 0) for r in results) / max(len(whole), 1):.0f} s a mutant; explained as equivalent: {len(whole) - len(counted)}')
	vain = sorted({t for r in whole for t in r.get('vain', [])})
	if vain:
		print('not built, or failing without a bug, too: ' + ', '.join(vain))


def mutant_of(r):
	return Mutant(r['file'], r['line'], r['old'], r['operator'], r['new'])


def list_survivors(results):
	why = explained()
	for r in results:
		if r['state'] == 'survived':
			print(mutant_of(r))
			print(f'      {"equivalent: " + why(r) if why(r) else "ran: " + " ".join(r["ran"])}')


def find_in_tree(mutant):
	"""The mutant where its line is now, in the file that is called most like its own; None when there is no such line any more."""
	names = [n for n in git('ls-files', mutant.folder).split('\n') if is_built(n)]
	found = [(-difflib.SequenceMatcher(None, name, mutant.path).ratio(), abs(i + 1 - mutant.number), name, i + 1) for name in names
		 for i, line in enumerate((TOP / name).read_text().split('\n')) if line == mutant.old]
	if not found:
		return None
	_, _, path, number = min(found)
	return Mutant(path, number, mutant.old, mutant.operator, mutant.new)


def in_shards(count, work):
	"""Calls work(number) for each shard, each but the first in a process of its own."""
	children = []
	for number in range(1, count):
		pid = os.fork()
		if not pid:
			work(number)
			os._exit(0)
		children.append(pid)
	work(0)
	for pid in children:
		os.waitpid(pid, 0)


def replay(results, kinds, verbose, number):
	shard = Shard(f'again-{number}')
	shard.prepare(None)
	for r in results:
		mutant = find_in_tree(mutant_of(r))
		if not mutant:
			print(f'{mutant_of(r)}\n      gone from the tree', flush=True)
			continue
		result = try_mutant(shard, mutant, kinds, verbose)
		print(f'{result["state"]} by {result["by"]} ({result["seconds"]} s): {mutant}', flush=True)
		if result['state'] == 'survived':
			print('      ran: ' + ' '.join(result['ran']), flush=True)


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument('--seed', help='default: the last commit that touched tests/')
	parser.add_argument('--count', type=int, default=200)
	parser.add_argument('--shards', type=int, default=1)
	parser.add_argument('--only', choices=FOLDERS)
	parser.add_argument('--kinds', nargs='+', choices=('unit', 'san', 'system'), default=('unit', 'san', 'system'), help='of tests, to save time')
	parser.add_argument('--list-survivors', action='store_true')
	parser.add_argument('--again', action='store_true')
	parser.add_argument('--one', nargs='+', metavar='ID')
	args = parser.parse_args()
	if os.geteuid():
		sys.exit('needs root')
	run = Run(args.seed or git('log', '-1', '--format=%H', '--', 'tests').strip(), args.count)
	if args.one or args.again:
		why = explained()
		chosen = [r for r in run.results() if (r['id'] in args.one if args.one else r['state'] == 'survived' and not why(r))]
		in_shards(args.shards, lambda number: replay(chosen[number::args.shards], args.kinds, bool(args.one), number))
		return
	if not args.list_survivors:
		print(f'seed {run.seed[:16]}, {args.count} mutants of {run.commit[:12]}; {len(run.results())} tried before', flush=True)
		in_shards(args.shards, lambda number: run.work(number, args.shards, args.only, args.kinds))
	list_survivors(run.results())
	table(run.results())


if __name__ == '__main__':
	main()
