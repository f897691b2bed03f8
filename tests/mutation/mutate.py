# SPDX-License-Identifier: Apache-2.0
"""Which lines of a C file can carry a bug, and the bugs of a line: changes within the line, so that line numbers stay."""
import re

TOKEN = re.compile(r'''(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b)|(?P<name>[A-Za-z_]\w*)
	|(?P<mark><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])''', re.X)
COMPARISONS = {'<': ['<=', '>='], '<=': ['<', '>'], '>': ['>=', '<='], '>=': ['>', '<'], '==': ['!='], '!=': ['==']}
OTHERS = {'&&': ('logic', '||'), '||': ('logic', '&&'), '&': ('bits', '|'), '|': ('bits', '&'), '<<': ('bits', '>>'), '>>': ('bits', '<<'),
	  '|=': ('bits', '&='), '&=': ('bits', '|='), '+=': ('sign', '-='), '-=': ('sign', '+='), '+': ('sign', '-'), '-': ('sign', '+')}
TIMES = ('NSEC_PER_SEC', 'NSEC_PER_MSEC', 'NSEC_PER_USEC', 'NS_PER_MS')
# Texts for people and checks of what cannot be.
SKIPPED = re.compile(r'\b(log_\w+|assert|static_assert|_Static_assert|bpf_printk|__attribute__)\s*\(')
DECLARATION = re.compile(r'^(static |const |struct |union |enum |unsigned |register |AUTO\(|u?int\d*(_t)? |__[us]\d+ |s?size_t |char |bool |long |short |double |'
			 r'float |FILE |DIR |time_t |pid_t |off_t |Elf\w* |Dwarf\w* |GElf\w* |typedef |extern |goto |return\b|break;|continue;|case |default)')
CONSTANT = re.compile(r'^\s*(?:enum \{ )?\w+ = [^,{}]*[0-9][^,{}]*(?:,|\s*\};|$)')


def blank(match):
	"""The same number of spaces: columns stay."""
	return re.sub(r'[^\n]', ' ', match.group(0))


def code_lines(source):
	"""The lines without comments and preprocessor lines."""
	source = re.sub(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|/\*.*?\*/|//[^\n]*',
			lambda m: m.group(0) if m.group(1) else blank(m), source, flags=re.S)
	return re.sub(r'^[ \t]*#(?:\\\n|[^\n])*', blank, source, flags=re.M).split('\n')


def mutable_lines(source):
	"""[(index of the line, its code, does a statement begin there)]: lines in functions, and constants of enums."""
	found = []
	inside = table = False
	ended = True # the code before is a whole statement or a block's begin
	for index, line in enumerate(code_lines(source)):
		code = line.strip()
		if line.startswith('{'):
			inside, ended = True, True
		elif line.startswith('}'):
			inside = False
		elif not code:
			pass
		elif not inside:
			if CONSTANT.match(line) and not line.startswith('static'):
				found.append((index, line, False))
		else:
			if re.match(r'(static )?(const )?.*\[[^]]*\] = \{', code) and not re.match(r'.*\};$', code):
				table = True
			if not table and not SKIPPED.search(line) and not re.fullmatch(r'[{}();,]+|else|do|} else {', code):
				found.append((index, line, ended))
			if table and code.endswith('};'):
				table = False
			ended = code[-1] in ';{}:' or code == 'else' or code == 'do' or code.endswith('else') or balanced_head(code)
	return found


def balanced_head(code):
	return bool(re.match(r'(if|while|for|else if|} else if|switch)\b', code)) and code.count('(') == code.count(')') and code.endswith(')')


def closing(line, at):
	"""The index of the bracket that closes the one at @at, or -1 where it closes on another line."""
	depth = 0
	for token in TOKEN.finditer(line, at):
		if token.group() in '([{':
			depth += 1
		elif token.group() in ')]}':
			depth -= 1
			if depth == 0:
				return token.start()
	return -1


def number_changes(text, before):
	"""Other values of a literal."""
	digits = text.rstrip('uUlL')
	suffix = text[len(digits):]
	value = int(digits, 0) if not re.fullmatch(r'0[0-7]+', digits) else int(digits, 8)
	write = (lambda v: hex(v)) if digits[:2] in ('0x', '0X') else str
	if value and value % 1000 == 0:
		yield 'unit', write(value * 1000) + suffix
	yield 'constant', write(value + 1) + suffix
	if value and before != '-':
		yield 'constant', write(value - 1) + suffix


def token_bugs(line):
	"""(operator, start, end, new text)"""
	tokens = list(TOKEN.finditer(line))
	for i, token in enumerate(tokens):
		text, start, end = token.group(), token.start(), token.end()
		spaced = line[start - 1:start] == ' ' and line[end:end + 1] in (' ', '') and line[:start].strip() # two operands
		if token.lastgroup == 'number':
			if re.match(r'\s*((static|const|struct|unsigned) )*\w+ [^=()]*\[$', line[:start]): # an array's size
				continue
			for operator, other in number_changes(text, tokens[i - 1].group() if i else ''):
				yield operator, start, end, other
		elif text in COMPARISONS and spaced:
			for other in COMPARISONS[text]:
				yield 'comparison', start, end, other
		elif text in OTHERS and spaced:
			yield OTHERS[text][0], start, end, OTHERS[text][1]
		elif text == '!':
			yield 'negation', start, end, ''
		elif text in TIMES:
			yield 'unit', start, end, text + ' * 1000'
		elif text in ('true', 'false'):
			yield 'flag', start, end, 'false' if text == 'true' else 'true'
		elif text in ('if', 'while') and i + 1 < len(tokens) and tokens[i + 1].group() == '(':
			last = closing(line, tokens[i + 1].start())
			if last > 0 and not line[tokens[i + 1].end():].startswith('!'):
				yield 'negation', tokens[i + 1].end(), last, '!(' + line[tokens[i + 1].end():last] + ')'
	for m in re.finditer(r'\? ([^?:,;()"]+|[^?:,;()"]*\([^?:()"]*\)) : ([^?:,;()"]+|[^?:,;()"]*\([^?:()"]*\))(?=[,;)]|$)', line):
		yield 'choice', m.start(), m.end(), '? %s : %s' % (m.group(2), m.group(1))
	for m in re.finditer(r'(?<=[(,] |.\()([&*]?[\w.>-]+), ([&*]?[\w.>-]+)(?=[,)])|(?<=\w\()([&*]?[\w.>-]+), ([&*]?[\w.>-]+)(?=[,)])', line):
		a, b = [g for g in m.groups() if g]
		if a != b:
			yield 'arguments', m.start(), m.end(), b + ', ' + a


def bugs(line, code, begins):
	"""[(operator, the new line)]: @line as it stands, @code the same without its comment, @begins: a statement begins here"""
	found = []
	for operator, start, end, text in token_bugs(code):
		found.append((operator, line[:start] + text + line[end:]))
	stripped = code.strip()
	indent = code[:len(code) - len(code.lstrip())]
	m = re.fullmatch(r'return (-E[A-Z0-9]+|err|ret|status|-errno|result|r|rc|failed);', stripped)
	if m:
		found.append(('error', indent + 'return 0;'))
	if begins and stripped in ('break;', 'continue;'):
		found.append(('jump', indent + '(void)0;'))
	if begins and stripped.endswith(';') and not DECLARATION.match(stripped) and re.match(r'[\w*(+-]', stripped) and \
			not re.match(r'(if|else|for|while|do|switch)\b|\w+ \*?\w+( = |;|\[)', stripped) and \
			stripped.count('(') == stripped.count(')') and stripped.count(';') == 1:
		found.append(('deletion', indent + '(void)0;'))
	return sorted({b for b in found if b[1] != line})
