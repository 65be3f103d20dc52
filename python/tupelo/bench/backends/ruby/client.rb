# A client of the Rinda server, told by lines of JSON what to do: [verb, argument].
#
# It runs beside a worker of the suite. A line "nothing" is answered at once: what that takes is what
# the way from Python to Ruby costs.
require 'base64'
require 'drb/unix'
require 'json'
require 'rinda/rinda'

KINDS = { 'int' => Integer, 'str' => String, 'float' => Float, 'bytes' => String }.freeze

# JSON has no bytes and no kinds: they stand as objects of one key.
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

front = DRbObject.new_with_uri("drbunix:#{ARGV[0]}")
waits = { 'take' => [:take, nil], 'read' => [:read, nil], 'try_take' => [:take, 0], 'try_read' => [:read, 0] }
$stdout.sync = true

$stdin.each_line do |line|
  verb, argument = JSON.parse(line)
  answer =
    case verb
    when 'nothing' then nil
    when 'put' then front.write(argument.map { |value| from_json(value) })
    when 'put_all' then front.write_all(argument.map { |tuple| tuple.map { |v| from_json(v) } })
    when 'count' then front.count(argument.map { |value| from_json(value) })
    when 'clear' then front.clear
    else
      method, patience = waits.fetch(verb)
      begin
        found = front.public_send(method, argument.map { |value| from_json(value) }, patience)
        found.map { |value| to_json_value(value) }
      rescue Rinda::RequestExpiredError
        nil
      end
    end
  $stdout.puts(JSON.generate([answer]))
end
