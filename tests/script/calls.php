<?php
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PHP program that says what its stacks may look like, then runs, for tests/script/judge.py. PHP 7.4 and later.
 *
 * usage: calls.php SECONDS [CASE...]
 *
 * Prints a line "frame NAME FIRST LAST CALLER..." for each function: the lines its frames may be on, and the functions that call it.
 * Functions of C are on line 0. A case is a way of calling; all of them when none is named.
 */
namespace Calls;

const MAIN = "php"; /* the judge takes the part of the name behind the last dot */

function spin($milliseconds)
{
	$end = microtime(true) + $milliseconds / 1000;
	$n = 0;
	while (microtime(true) < $end)
		for ($i = 0; $i < 200; $i++)
			$n += $i * $i;
	return $n;
}

/* --- deep --- */
function leaf()
{
	return spin(5);
}

function down($n)
{
	return $n
		? down($n - 1)
		: leaf();
}

function deep()
{
	return down(100);
}

/* --- through C and back --- */
function mapped($n)
{
	return spin($n);
}

function map()
{
	return array_map('Calls\mapped', [1, 2, 3]);
}

function compare($a, $b)
{
	spin(1);
	return $a <=> $b;
}

function sorts()
{
	$numbers = [3, 1, 2];
	usort($numbers, 'Calls\compare');
	return $numbers;
}

function replaced($match)
{
	spin(2);
	return $match[0];
}

function replace()
{
	return preg_replace_callback('/a/', 'Calls\replaced', 'aba');
}

function nested_inner($n)
{
	return spin($n);
}

function nested_outer($n)
{
	return array_map('Calls\nested_inner', [$n, $n]);
}

function nested()
{
	return array_map('Calls\nested_outer', [1, 2]);
}

function called()
{
	return spin(2);
}

function call()
{
	return call_user_func('Calls\called') + \call_user_func_array('Calls\called', []);
}

/* --- closures --- */
function closed()
{
	$times = 2;
	$plain = function () use ($times) {
		return spin($times);
	};
	return $plain() + (fn() => spin($times))() + array_sum(array_map(fn($n) => spin($n), [1, 1]));
}

/* --- generators --- */
function numbers()
{
	for ($i = 0; $i < 3; $i++) {
		spin(1);
		yield $i;
	}
}

function generator()
{
	$n = 0;
	foreach (numbers() as $number)
		$n += $number;
	return $n;
}

function inner_numbers()
{
	for ($i = 0; $i < 3; $i++) {
		spin(1);
		yield $i;
	}
	return 1;
}

function middle_numbers()
{
	$n = yield from inner_numbers();
	return $n;
}

function outer_numbers()
{
	$n = yield from middle_numbers();
	yield $n;
}

function delegated()
{
	return count(iterator_to_array(outer_numbers(), false));
}

function lone_delegate()
{
	yield from inner_numbers();
}

function delegated_by_loop()
{
	foreach (lone_delegate() as $number)
		spin(0.2);
}

/* --- methods --- */
trait Spins
{
	public function of_trait()
	{
		return spin(1);
	}
}

class One
{
	use Spins;

	public function __construct()
	{
		spin(1);
	}

	public function method()
	{
		return spin(1) + self::fixed() + $this->of_trait();
	}

	public static function fixed()
	{
		return spin(1);
	}

	public function __call($name, $arguments)
	{
		return spin(1);
	}

	public function __get($name)
	{
		return spin(1);
	}

	public function __toString()
	{
		return (string)spin(1);
	}

	public function __invoke()
	{
		return spin(1);
	}

	public function __destruct()
	{
		spin(1);
	}
}

class Two extends One
{
	use Spins;

	public function method()
	{
		return parent::method();
	}
}

function methods()
{
	$two = new Two();
	$two->method();
	$two->missing();
	$n = $two->nothing . strlen("$two");
	return $n . $two();
}

function nameless()
{
	$object = new class {
		public function run()
		{
			return spin(1);
		}
	};
	return $object->run();
}

/* --- exceptions --- */
class Guard
{
	public function __destruct()
	{
		spin(1);
	}
}

function raise($n)
{
	$guard = new Guard();
	if (!$n)
		throw new \Exception('deep');
	raise($n - 1);
}

function caught()
{
	try {
		raise(3);
	} catch (\Exception $e) {
		return spin(1);
	} finally {
		spin(1);
	}
}

/* --- files --- */
function includes()
{
	return include __DIR__ . '/included.php';
}

/* --- C without calls back --- */
function hashes()
{
	$text = str_repeat('a', 100000);
	for ($i = 0; $i < 20; $i++)
		$text = sha1($text) . str_repeat('b', 100000);
	return $text;
}

/* --- fibers --- */
function in_fiber()
{
	for ($i = 0; $i < 3; $i++) {
		spin(1);
		\Fiber::suspend($i);
	}
}

function fibers()
{
	if (!class_exists('Fiber'))
		return;
	$fiber = new \Fiber('Calls\in_fiber');
	$fiber->start();
	while (!$fiber->isTerminated()) {
		spin(0.5);
		$fiber->resume();
	}
}

const NAMES = [
	'deep' => 'deep', 'map' => 'map', 'sort' => 'sorts', 'replace' => 'replace', 'nested' => 'nested', 'call' => 'call',
	'closed' => 'closed', 'generator' => 'generator', 'delegated' => 'delegated', 'loop' => 'delegated_by_loop',
	'methods' => 'methods', 'nameless' => 'nameless', 'exceptions' => 'caught', 'include' => 'includes', 'hash' => 'hashes',
	'fibers' => 'fibers',
];

const CALLERS = [
	'leaf' => ['down'], 'down' => ['down', 'deep'], 'mapped' => ['array_map'], 'compare' => ['usort'],
	'replaced' => ['preg_replace_callback'], 'nested_inner' => ['array_map'], 'nested_outer' => ['array_map'],
	'called' => ['call', 'call_user_func', 'call_user_func_array'], 'numbers' => ['generator'],
	'inner_numbers' => ['middle_numbers', 'lone_delegate'], 'middle_numbers' => ['outer_numbers'],
	'outer_numbers' => ['iterator_to_array'], 'lone_delegate' => ['delegated_by_loop'],
	'raise' => ['caught', 'raise'], 'in_fiber' => ['Fiber::start', 'Fiber::resume'],
];

const METHODS = [
	'One::__construct' => ['methods'], 'One::method' => ['Two::method'], 'One::fixed' => ['One::method'],
	'Two::of_trait' => ['One::method'], 'Two::method' => ['methods'], 'One::__call' => ['methods'], 'One::__get' => ['methods'],
	'One::__toString' => ['methods'], 'One::__invoke' => ['methods'], 'One::__destruct' => ['methods', MAIN],
	'Guard::__destruct' => ['raise', 'caught'],
];

const OF_C = [
	'array_map' => ['map', 'nested', 'nested_outer', 'closed', 'put', 'tell'], 'usort' => ['sorts'], 'preg_replace_callback' => ['replace'],
	'call_user_func' => ['call'], 'call_user_func_array' => ['call'], 'iterator_to_array' => ['delegated'],
	'Fiber::start' => ['fibers'], 'Fiber::resume' => ['fibers'], 'Fiber::suspend' => ['in_fiber'], 'array_sum' => ['closed'],
	'Fiber::isTerminated' => ['fibers'], 'sha1' => ['hashes'], 'str_repeat' => ['hashes'], 'microtime' => ['spin', MAIN],
	'Fiber::__construct' => ['fibers'], 'strlen' => ['methods'], 'count' => ['delegated'], 'Exception::__construct' => ['raise'], 'class_exists' => ['fibers'],
];

const SPINNERS = [
	'leaf', 'mapped', 'compare', 'replaced', 'nested_inner', 'called', 'numbers', 'inner_numbers', 'delegated_by_loop',
	'caught', 'in_fiber', 'fibers',
];

/* The name of a function of this file as the runtime has it. */
function in_full($name)
{
	return $name === MAIN || strpos($name, 'Fiber') === 0 || isset(OF_C[$name]) || strpos($name, '.') ? $name : 'Calls\\' . $name;
}

function put($name, $first, $last, $callers)
{
	echo "frame $name $first $last ", implode(' ', array_map('Calls\in_full', $callers)), "\n";
}

function tell_closures()
{
	$name = [];
	$lines = file(__FILE__);
	$from = (new \ReflectionFunction('Calls\closed'))->getStartLine();
	if (PHP_VERSION_ID >= 80400)
		foreach ([3, 6] as $i)
			$name[] = sprintf('{closure:Calls\\closed():%d}', $from + $i);
	else
		$name[] = 'Calls\\{closure}';
	foreach ($name as $n)
		put($n, $from + 3, $from + 6, ['closed', 'array_map']);
	return $name;
}

function tell()
{
	$spin = array_map('Calls\in_full', array_merge(SPINNERS, array_keys(METHODS)));
	$spin = array_merge($spin, tell_closures(), [MAIN, 'class@anonymous::run']);
	foreach (CALLERS + array_fill_keys(array_values(NAMES), [MAIN]) as $name => $callers) {
		$f = new \ReflectionFunction('Calls\\' . $name);
		put('Calls\\' . $name, $f->getStartLine(), $f->getEndLine(), $callers);
	}
	foreach (METHODS as $name => $callers) {
		$f = new \ReflectionMethod('Calls\\' . $name);
		put('Calls\\' . $name, $f->getStartLine(), $f->getEndLine(), $callers);
	}
	foreach (OF_C as $name => $callers)
		put($name, 0, 0, $callers);
	$f = new \ReflectionFunction('Calls\\spin');
	echo "frame Calls\\spin ", $f->getStartLine() + 2, ' ', $f->getStartLine() + 7, ' ', implode(' ', $spin), "\n";
	$f = new \ReflectionFunction('Calls\\nameless');
	put('class@anonymous::run', $f->getStartLine() + 3, $f->getStartLine() + 6, ['nameless']);
	foreach (['tell' => [MAIN], 'put' => ['tell', 'tell_closures'], 'tell_closures' => ['tell'], 'in_full' => ['array_map']] as $name => $callers) {
		$f = new \ReflectionFunction('Calls\\' . $name);
		put('Calls\\' . $name, $f->getStartLine(), $f->getEndLine(), $callers);
	}
	echo "frame included.php 4 7 Calls\\includes\n", "root calls.php\n";
}

tell();
$cases = array_slice($argv, 2) ?: array_keys(NAMES);
$end = microtime(true) + (float)$argv[1];
while (microtime(true) < $end)
	foreach ($cases as $case)
		('Calls\\' . NAMES[$case])();
