# One tuple space, and what a client would else do tuple by tuple: behind DRb, or in a program.
require 'drb'
require 'objspace'
require 'rinda/tuplespace'

# What the clients get: the space, and loops over it that need no round trip per tuple or template.
class Front
  include DRbUndumped

  def initialize
    @space = Rinda::TupleSpace.new
  end

  def write(tuple)
    @space.write(tuple)
    nil
  end

  def take(template, patience)
    @space.take(template, patience)
  end

  def read(template, patience)
    @space.read(template, patience)
  end

  # A match of the first of some templates that has one, and which that is; nil if none has.
  def first_of(method, templates)
    templates.each_with_index do |template, place|
      return [place, @space.public_send(method, template, 0)]
    rescue Rinda::RequestExpiredError
      next
    end
    nil
  end

  def write_all(tuples)
    tuples.each { |tuple| @space.write(tuple) }
    nil
  end

  def count(template)
    @space.read_all(template).size
  end

  # Of all that lives after a collection: the heap's own size follows what is thrown away.
  def memory_bytes
    GC.start
    ObjectSpace.memsize_of_all
  end

  def clear
    @space = Rinda::TupleSpace.new
    nil
  end
end
