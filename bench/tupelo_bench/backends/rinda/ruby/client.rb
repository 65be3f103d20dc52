# A client of the Rinda server, told by lines of JSON what to do: [verb, argument].
#
# It runs beside a worker of the suite; started without a socket it has a space of its own instead. A
# line "nothing" is answered at once: what that takes is what the way from Python to Ruby costs. "put_each"
# and "take_each" time themselves, so that this way is not in their figures.
require 'base64'
require 'drb/unix'
require 'json'
require 'rinda/rinda'
require_relative 'front'

KINDS = { 'int' => Integer, 'str' => String, 'float' => Float, 'bytes' => String }.freeze

# JSON has no bytes and no kinds: they stand as objects of one key. Nor has it infinity or a NaN, which both
# sides write by their names.
def from_json(value)
  return value unless value.is_a?(Hash)
  return Base64.strict_decode64(value['bytes']) if value.key?('bytes')
  return value['shelf'].to_sym if value.key?('shelf')

  KINDS[value['kind']] # nil, which matches anything, for all others
end

def to_json_value(value)
  return value unless value.is_a?(String) && value.encoding == Encoding::BINARY

  { 'bytes' => Base64.strict_encode64(value) }
end

def tuple_from(values)
  values.map { |value| from_json(value) }
end

def tuple_to(found)
  found.map { |value| to_json_value(value) }
end

def now_ns
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

# One after the other, as a program would; what the values look like in JSON is not its business.
def put_each(front, tuples)
  tuples = tuples.map { |tuple| tuple_from(tuple) }
  begin_ns = now_ns
  tuples.each { |tuple| front.write(tuple) }
  now_ns - begin_ns
end

def take_each(front, templates)
  templates = templates.map { |template| tuple_from(template) }
  begin_ns = now_ns
  taken = templates.map { |template| front.take(template, nil) }
  [now_ns - begin_ns, taken.map { |found| tuple_to(found) }]
end

# A pattern that is one of some names: to Rinda anything is a pattern that `===` says it matches.
def one_of(names)
  /\A(?:#{Regexp.union(names.map(&:to_s))})\z/
end

# A match of one of some templates, which differ in the names of space and shelf: a look with each, in one
# message, and then one template for all, which waits. Answers which it was, and how long it waited.
def search(front, method, templates)
  found = front.first_of(method, templates)
  return [found[0], tuple_to(found[1]), 0] if found

  firsts, shelves, *fields = templates.transpose
  first = firsts.any?(&:nil?) ? nil : one_of(firsts)
  begin_ns = now_ns
  tuple = front.public_send(method, [first, one_of(shelves), *fields.map(&:first)], nil)
  [shelves.index(tuple[1]), tuple_to(tuple), now_ns - begin_ns]
end

front = ARGV.empty? ? Front.new : DRbObject.new_with_uri("drbunix:#{ARGV[0]}")
waits = { 'take' => [:take, nil], 'read' => [:read, nil], 'try_take' => [:take, 0], 'try_read' => [:read, 0] }
$stdout.sync = true

$stdin.each_line do |line|
  verb, argument = JSON.parse(line, allow_nan: true)
  answer =
    case verb
    when 'nothing' then nil
    when 'put' then front.write(tuple_from(argument))
    when 'put_all' then front.write_all(argument.map { |tuple| tuple_from(tuple) })
    when 'put_each' then put_each(front, argument)
    when 'take_each' then take_each(front, argument)
    when 'search' then search(front, argument[0].to_sym, argument[1].map { |tuple| tuple_from(tuple) })
    when 'count' then front.count(tuple_from(argument))
    when 'memory' then front.memory_bytes
    when 'clear' then front.clear
    else
      method, patience = waits.fetch(verb)
      begin
        tuple_to(front.public_send(method, tuple_from(argument), patience))
      rescue Rinda::RequestExpiredError
        nil
      end
    end
  $stdout.puts(JSON.generate([answer], allow_nan: true))
end
